import { createServer, type Server } from 'node:http';
import { ECRClient } from '@aws-sdk/client-ecr';
import { afterEach, describe, expect, test } from '@jest/globals';
import { hasImage, loginFor, repositoryUri } from '../../../deploy/image/repository.ts';

let server: Server | undefined;
let ecr: ECRClient | undefined;

/** ECR, with one answer to everything. */
async function answering(status: number, body: object): Promise<ECRClient> {
  server = createServer((request, response) => {
    request
      .resume()
      .once('end', () =>
        response.writeHead(status, { 'content-type': 'application/x-amz-json-1.1' }).end(JSON.stringify(body)),
      );
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  const credentials = { accessKeyId: 'key', secretAccessKey: 'secret' };
  ecr = new ECRClient({ endpoint: `http://127.0.0.1:${port}`, region: 'us-east-1', credentials, maxAttempts: 1 });
  return ecr;
}

const fault = (name: string) => answering(400, { __type: name, message: 'as ECR says it' });

afterEach(async () => {
  ecr?.destroy();
  await new Promise((resolve) => server?.close(resolve) ?? resolve(undefined));
});

describe('the repository', () => {
  test.each(['ImageNotFoundException', 'RepositoryNotFoundException'])('has no image: %s', async (name) => {
    expect(await hasImage(await fault(name), 'worker', '1')).toBe(false);
  });

  test('has the image', async () => {
    expect(await hasImage(await answering(200, { imageDetails: [{}] }), 'worker', '1')).toBe(true);
  });

  test.each([
    ['ExpiredTokenException', "AWS doesn't take these credentials: as ECR says it"],
    ['UnrecognizedClientException', "AWS doesn't take these credentials: as ECR says it"],
    ['AccessDeniedException', 'These credentials may not use ECR: as ECR says it'],
  ])('says what is wrong with credentials: %s', async (name, message) => {
    await expect(hasImage(await fault(name), 'worker', '1')).rejects.toThrow(message);
  });

  test('does not take a failure for the absence of an image', async () => {
    await expect(hasImage(await fault('ServerException'), 'worker', '1')).rejects.toThrow('as ECR says it');
  });

  test('was deleted by somebody', async () => {
    await expect(repositoryUri(await fault('RepositoryNotFoundException'), 'worker')).rejects.toThrow(
      /repository worker isn't: somebody deleted it/,
    );
  });

  test('gives a login for the registry that it is in', async () => {
    const authorizationToken = Buffer.from('AWS:secret:with:colons').toString('base64');
    const client = await answering(200, { authorizationData: [{ authorizationToken }] });
    expect(await loginFor(client, 'registry.example/worker')).toEqual({
      registry: 'registry.example',
      user: 'AWS',
      password: 'secret:with:colons',
    });
  });
});
