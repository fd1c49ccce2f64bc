import { ConfigError, describe } from '../shared/errors.ts';
import { CliError } from './exit.ts';

type Rule = { when: (fault: Error) => boolean; message: (fault: Error) => string; fix: string };

const named =
  (...names: string[]) =>
  (fault: Error): boolean =>
    names.includes(fault.name);

/** What an AWS fault means to the person at the terminal. The first that fits counts. */
const rules: Rule[] = [
  {
    when: named('CredentialsProviderError'),
    message: () => 'there are no AWS credentials',
    fix: 'set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; for the system on this machine, use --local',
  },
  {
    when: named('ExpiredToken', 'ExpiredTokenException', 'TokenRefreshRequired'),
    message: () => 'the AWS credentials have expired',
    fix: 'log in again, e.g. with `aws sso login`',
  },
  {
    when: named(
      'InvalidClientTokenId',
      'UnrecognizedClientException',
      'InvalidSignatureException',
      'SignatureDoesNotMatch',
    ),
    message: () => 'AWS does not know these credentials',
    fix: 'look at AWS_PROFILE and AWS_ACCESS_KEY_ID',
  },
  {
    when: named('AccessDenied', 'AccessDeniedException'),
    message: (fault) => fault.message,
    fix: 'these credentials lack that permission: use others, or have it granted',
  },
  {
    when: ({ message }) => message === 'Region is missing',
    message: () => 'it is not known which region to look in',
    fix: 'name --region, or set AWS_REGION (serverless deploys to us-east-1 when nothing is set)',
  },
  {
    when: (fault) => 'code' in fault && fault.code === 'ECONNREFUSED',
    message: (fault) => `nobody answers (${describe(fault)})`,
    fix: 'if it is the local system, it has ended: start it with `npm start`',
  },
  {
    when: (fault) => fault instanceof ConfigError,
    message: ({ message }) => `the fleet's settings can't be read: ${message}`,
    fix: 'use the command of the revision that is deployed',
  },
];

/** @returns the same for anything that was thrown: what is wrong, and what to do about it, where that is known */
export function explained(fault: unknown): CliError {
  if (fault instanceof CliError) return fault;
  if (!(fault instanceof Error)) return new CliError(describe(fault));
  const rule = rules.find(({ when }) => when(fault));
  return rule ? new CliError(rule.message(fault), rule.fix) : new CliError(describe(fault));
}
