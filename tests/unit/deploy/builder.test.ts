import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { BUILDERS, findBuilder } from '../../../deploy/image/builder.ts';
import { type FakeBuilders, type Fault, fakeBuilders } from '../../support/deploy/fake-builder.ts';

const { PATH } = process.env;
const login = { registry: 'registry.example', user: 'AWS', password: 'the-password' };
const quiet = () => undefined;
let builders: FakeBuilders | undefined;

/** No other builders are found than these, whatever there is on this machine. */
function install(names: string[], fault?: Fault): void {
  builders = fakeBuilders(names);
  process.env['PATH'] = `${builders.bin}${delimiter}/bin`;
  process.env['FAKE_BUILDER_LOG'] = builders.log;
  if (fault !== undefined) process.env['FAKE_BUILDER_FAULT'] = fault;
}

const told = () => (builders?.told() ?? []).map(({ name, args }) => [name, ...args].join(' '));

beforeEach(() => {
  delete process.env['FAKE_BUILDER_FAULT'];
  delete process.env['AWS_ENDPOINT_URL'];
});
afterEach(() => {
  process.env['PATH'] = PATH;
  if (builders !== undefined) rmSync(builders.bin, { recursive: true });
  builders = undefined;
});

describe('the builder', () => {
  test('is the first in the order that is installed', async () => {
    install(['podman', 'finch']);
    expect((await findBuilder(BUILDERS, quiet)).name).toBe('podman');
    expect((await findBuilder(['finch', 'podman'], quiet)).name).toBe('finch');
  });

  test('must answer, not only be there', async () => {
    install(['docker'], 'stopped');
    await expect(findBuilder(BUILDERS, quiet)).rejects.toThrow(
      "docker doesn't work: Cannot connect to the daemon.\n  podman isn't installed\n  buildah isn't installed\n  finch isn't installed",
    );
  });

  test('is asked for in words when there is none', async () => {
    const empty = mkdtempSync(join(tmpdir(), 'holdfast-empty-'));
    process.env['PATH'] = empty;
    await expect(findBuilder(BUILDERS, quiet)).rejects.toThrow(/docker isn't installed[^]*--param image=<uri>/);
    rmSync(empty, { recursive: true });
  });

  test.each(BUILDERS)('%s builds for the platform of the task, logs in, and pushes', async (name) => {
    install([name]);
    const lines: string[] = [];
    const builder = await findBuilder(BUILDERS, (line) => lines.push(line));
    await builder.build(tmpdir(), 'worker:1');
    await builder.push('worker:1', 'registry.example/worker:1', login);
    const [, build, inspect, ...rest] = told();
    expect(build).toBe(`${name} build --platform linux/arm64 --file Dockerfile --tag worker:1 .`);
    expect(inspect).toMatch(new RegExp(`^${name} (image )?inspect .* worker:1$`));
    expect(rest).toEqual([
      `${name} login --username AWS --password-stdin registry.example`,
      `${name} tag worker:1 registry.example/worker:1`,
      `${name} push registry.example/worker:1`,
    ]);
    expect(lines).toEqual(expect.arrayContaining(['STEP 1', 'STEP 2']));
  });

  test('gets the password where nobody else can read it', async () => {
    install(['docker']);
    await (await findBuilder(BUILDERS, quiet)).push('worker:1', 'registry.example/worker:1', login);
    expect(told().join('\n')).not.toContain(login.password);
    expect(builders?.told().find(({ args }) => args[0] === 'login')?.input).toBe(login.password);
  });

  test.each<[Fault, RegExp]>([
    ['foreign', /^docker can't build for linux\/arm64 here[^]*binfmt[^]*exec format error$/],
    ['broken', /^docker could not build the worker's image \(exit code 7\)\.[^]*step 40\n {2}npm error 404$/],
    ['amd64', /^docker built the image for linux\/amd64; the task runs on linux\/arm64\./],
  ])('says why it could not build: %s', async (fault, message) => {
    install(['docker'], fault);
    const builder = await findBuilder(BUILDERS, quiet);
    await expect(builder.build(tmpdir(), 'worker:1')).rejects.toThrow(message);
  });

  test("shows the end of a build's log, and not all of it", async () => {
    install(['docker'], 'broken');
    const builder = await findBuilder(BUILDERS, quiet);
    const message = await builder.build(tmpdir(), 'worker:1').catch((fault: Error) => fault.message);
    expect(message).not.toContain('step 1\n');
  });

  test.each<[Fault, RegExp]>([
    ['login-refused', /^docker could not log in to registry\.example\.[^]*400 Bad Request$/],
    ['push-refused', /^docker could not push registry\.example\/worker:1\.[^]*not authorized to perform/],
  ])('says why it could not push: %s', async (fault, message) => {
    install(['docker'], fault);
    const builder = await findBuilder(BUILDERS, quiet);
    await expect(builder.push('worker:1', 'registry.example/worker:1', login)).rejects.toThrow(message);
  });
});
