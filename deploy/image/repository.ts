/** The stage's own repository, in ECR. */
import {
  DescribeImagesCommand,
  DescribeRepositoriesCommand,
  type ECRClient,
  GetAuthorizationTokenCommand,
} from '@aws-sdk/client-ecr';
import type { Login } from './builder.ts';
import { ImageError } from './errors.ts';

/** @throws ImageError when AWS can't be asked */
export async function hasImage(ecr: ECRClient, repositoryName: string, imageTag: string): Promise<boolean> {
  try {
    await ecr.send(new DescribeImagesCommand({ repositoryName, imageIds: [{ imageTag }] }));
    return true;
  } catch (fault) {
    // Before the first deployment there isn't even a repository.
    if (nameOf(fault) === 'ImageNotFoundException' || nameOf(fault) === 'RepositoryNotFoundException') return false;
    throw explained(fault);
  }
}

/** @throws ImageError when AWS can't be asked, or the repository isn't there */
export async function repositoryUri(ecr: ECRClient, repositoryName: string): Promise<string> {
  try {
    const found = await ecr.send(new DescribeRepositoriesCommand({ repositoryNames: [repositoryName] }));
    const uri = found.repositories?.[0]?.repositoryUri;
    if (uri !== undefined) return uri;
  } catch (fault) {
    if (nameOf(fault) !== 'RepositoryNotFoundException') throw explained(fault);
  }
  throw new ImageError(
    `The stack is there, but its repository ${repositoryName} isn't: somebody deleted it. ` +
      `Create it again (aws ecr create-repository --repository-name ${repositoryName}) and deploy once more.`,
  );
}

/** For half a day. @throws ImageError */
export async function loginFor(ecr: ECRClient, uri: string): Promise<Login> {
  try {
    const { authorizationData } = await ecr.send(new GetAuthorizationTokenCommand({}));
    const token = Buffer.from(authorizationData?.[0]?.authorizationToken ?? '', 'base64').toString();
    const [, user, password] = /^([^:]+):(.+)$/.exec(token) ?? [];
    if (user && password) return { registry: uri.slice(0, uri.indexOf('/')), user, password };
  } catch (fault) {
    throw explained(fault);
  }
  throw new ImageError('ECR gave no password to log in with.');
}

const noCredentials = ['CredentialsProviderError', 'ProviderError', 'TokenProviderError'];
const refusedCredentials = ['ExpiredTokenException', 'UnrecognizedClientException', 'InvalidSignatureException'];

function explained(fault: unknown): unknown {
  const name = nameOf(fault);
  const said = fault instanceof Error ? fault.message : String(fault);
  if (noCredentials.includes(name) || /AWS provider credentials not found/.test(said)) {
    return new ImageError(`There are no AWS credentials to look into ECR with: ${said}`);
  }
  if (refusedCredentials.includes(name)) return new ImageError(`AWS doesn't take these credentials: ${said}`);
  if (name === 'AccessDeniedException') return new ImageError(`These credentials may not use ECR: ${said}`);
  return fault;
}

function nameOf(fault: unknown): string {
  return fault instanceof Error ? fault.name : '';
}
