import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { CONTENT, contentTag, PLATFORM } from '../../../deploy/image/content.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const read = (name: string) => readFileSync(join(ROOT, name), 'utf8');

describe("the image's tag", () => {
  let copy: string;
  beforeEach(() => {
    copy = mkdtempSync(join(tmpdir(), 'holdfast-content-'));
    for (const name of CONTENT) cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  });
  afterEach(() => rmSync(copy, { recursive: true }));

  test('is the same for the same content, wherever it is and whatever else is there', async () => {
    writeFileSync(join(copy, 'serverless.yml'), 'service: other');
    expect(await contentTag(copy)).toBe(await contentTag(ROOT));
  });

  test.each<[string, () => void]>([
    ['the content of a file', () => writeFileSync(join(copy, 'worker', 'main.ts'), '')],
    ['the name of a file', () => renameSync(join(copy, 'shared', 'log.ts'), join(copy, 'shared', 'logs.ts'))],
    ['where a file is', () => renameSync(join(copy, 'shared', 'log.ts'), join(copy, 'worker', 'log.ts'))],
    ['a new file', () => writeFileSync(join(copy, 'sources', 'new.ts'), '')],
    ['the lockfile', () => writeFileSync(join(copy, 'package-lock.json'), '{}')],
    ['the Dockerfile', () => writeFileSync(join(copy, 'Dockerfile'), 'FROM scratch')],
  ])('is another one with %s', async (_what, change) => {
    const before = await contentTag(copy);
    change();
    expect(await contentTag(copy)).not.toBe(before);
  });
});

describe("the image's content", () => {
  const dockerfile = read('Dockerfile');

  test('is what the Dockerfile copies, and how', () => {
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, names = '']) =>
      names.split(' '),
    );
    expect(new Set(CONTENT)).toEqual(new Set([...copied, 'Dockerfile', '.dockerignore']));
  });

  test('is all that a builder gets to see', () => {
    const allowed = [...read('.dockerignore').matchAll(/^!(.+)$/gm)].map(([, name]) => name);
    expect(new Set(allowed)).toEqual(
      new Set(CONTENT.filter((name) => !['Dockerfile', '.dockerignore'].includes(name))),
    );
  });

  test('runs on the platform that the task asks for', () => {
    const [os, cpu] = PLATFORM.toUpperCase().split('/');
    expect(read('deploy/fleet.yml')).toContain(`CpuArchitecture: ${cpu}, OperatingSystemFamily: ${os}`);
  });

  // The dependencies are installed on the platform that builds, and copied to the one that runs.
  test('has only packages that are the same on every platform, and run nothing to be installed', () => {
    const locked = z.record(z.string(), z.looseObject({ dev: z.boolean().optional() }));
    const packages = locked.parse((JSON.parse(read('package-lock.json')) as { packages: unknown }).packages);
    const shipped = Object.entries(packages).filter(([name, { dev }]) => name !== '' && dev !== true);
    expect(shipped.length).toBeGreaterThan(10);
    const bound = shipped.filter(([, one]) => ['os', 'cpu', 'hasInstallScript'].some((field) => field in one));
    expect(bound.map(([name]) => name)).toEqual([]);
  });

  test('needs nothing to run while the image for another platform is put together', () => {
    const last = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '));
    expect(last).not.toMatch(/^RUN/m);
  });
});
