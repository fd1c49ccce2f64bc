/** Whatever builds images here. The four take the same commands, but for how they show what an image is. */
import { PLATFORM } from './content.ts';
import { ImageError, withTail } from './errors.ts';
import { type Ran, run } from './run.ts';

export const BUILDERS = ['docker', 'podman', 'buildah', 'finch'] as const;
export type BuilderName = (typeof BUILDERS)[number];

export type Login = { registry: string; user: string; password: string };

export type Builder = {
  name: BuilderName;
  /** @throws ImageError when that fails, or when what was built is for another kind of machine */
  build(root: string, image: string): Promise<void>;
  /** Sends `image` to `uri`. @throws ImageError */
  push(image: string, uri: string, login: Login): Promise<void>;
};

const inspect: Record<BuilderName, string[]> = {
  docker: ['image', 'inspect', '--format', '{{.Os}}/{{.Architecture}}'],
  podman: ['image', 'inspect', '--format', '{{.Os}}/{{.Architecture}}'],
  buildah: ['inspect', '--type', 'image', '--format', '{{.OCIv1.OS}}/{{.OCIv1.Architecture}}'],
  finch: ['image', 'inspect', '--format', '{{.Os}}/{{.Architecture}}'],
};

/** BuildKit's own format would push an index with attestations, where ECS wants one image. */
const env = { DOCKER_BUILDKIT: '1', BUILDX_NO_DEFAULT_ATTESTATIONS: '1' };

/**
 * The first that is installed and answers.
 * @throws ImageError that says of each why not
 */
export async function findBuilder(names: readonly BuilderName[], onLine: (line: string) => void): Promise<Builder> {
  const why: string[] = [];
  for (const name of names) {
    const ran = await run(name, ['info']);
    if (ran?.code === 0) return builder(name, onLine);
    why.push(
      ran === undefined ? `${name} isn't installed` : `${name} doesn't work: ${ran.tail.at(-1) ?? 'no reason given'}`,
    );
  }
  throw new ImageError(
    `Nothing here can build the worker's image:\n${why.map((line) => `  ${line}`).join('\n')}\n` +
      'Install or start one of them, or give an image that was built elsewhere: --param image=<uri>',
  );
}

function builder(name: BuilderName, onLine: (line: string) => void): Builder {
  async function must(args: string[], failed: (ran: Ran) => string, options: Parameters<typeof run>[2] = {}) {
    const ran = await run(name, args, { env, onLine, ...options });
    if (ran === undefined) throw new ImageError(`${name} has gone away.`);
    if (ran.code !== 0) throw new ImageError(withTail(failed(ran), ran.tail));
    return ran.stdout.trim();
  }
  return {
    name,
    async build(root, image) {
      const args = ['build', '--platform', PLATFORM, '--file', 'Dockerfile', '--tag', image, '.'];
      await must(args, buildFailed(name), { cwd: root });
      const platform = await must([...inspect[name], image], () => `${name} doesn't know the image that it built.`);
      if (platform === PLATFORM) return;
      throw new ImageError(`${name} built the image for ${platform}; the task runs on ${PLATFORM}. ${otherwise}`);
    },
    async push(image, uri, { registry, user, password }) {
      // By way of standard input: a command line can be read by everybody on the machine.
      const login = ['login', '--username', user, '--password-stdin', registry];
      await must(login, () => `${name} could not log in to ${registry}.`, { input: password });
      await must(['tag', image, uri], () => `${name} could not name the image ${uri}.`);
      await must(['push', uri], () => `${name} could not push ${uri}.`);
    },
  };
}

const otherwise =
  'Build on an ARM machine, install an emulator (docker run --privileged --rm tonistiigi/binfmt --install arm64), ' +
  'or give an image that was built elsewhere: --param image=<uri>';

function buildFailed(name: BuilderName): (ran: Ran) => string {
  return ({ code, tail }) => {
    const foreign = /exec format error|exec user process caused|does not match the (specified|expected) platform/i;
    if (tail.some((line) => foreign.test(line))) {
      return `${name} can't build for ${PLATFORM} here: this machine neither is one nor emulates one. ${otherwise}`;
    }
    return `${name} could not build the worker's image (exit code ${code}).`;
  };
}
