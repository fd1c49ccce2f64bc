import type { SourceProfile } from '../shared/source.ts';
import { numbered } from './numbered.ts';
import { plain } from './plain.ts';

export const defaultSource = plain.name;

const profiles = new Map<string, SourceProfile>([plain, numbered].map((profile) => [profile.name, profile]));

export const sourceNames = [...profiles.keys()];

/** @returns undefined for a name that this revision doesn't know */
export function profileOf(name: string): SourceProfile | undefined {
  return profiles.get(name);
}
