/** What the worker's image is made of, in one short name: the same content has the same tag, on every machine. */
import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';

/** Graviton: for the same money more than x86, and a worker only runs Node. As `RuntimePlatform` in deploy/fleet.yml. */
export const PLATFORM = 'linux/arm64';

/** All that the Dockerfile copies, and what says how. A test holds this list to the Dockerfile. */
export const CONTENT = [
  '.dockerignore',
  'Dockerfile',
  'package.json',
  'package-lock.json',
  'shared',
  'sources',
  'worker',
] as const;

const tagLength = 20;

/** @param root the folder with the Dockerfile */
export async function contentTag(root: string): Promise<string> {
  const hash = createHash('sha256').update(PLATFORM);
  for (const name of CONTENT) {
    for (const file of await filesOf(join(root, name))) {
      const content = await readFile(file);
      // With its length in front, no content can pass for the beginning of another file.
      hash.update(`\0${relative(root, file).split(sep).join('/')}\0${content.length}\0`).update(content);
    }
  }
  return hash.digest('hex').slice(0, tagLength);
}

async function filesOf(path: string): Promise<string[]> {
  if ((await stat(path)).isFile()) return [path];
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
