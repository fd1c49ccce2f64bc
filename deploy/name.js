/**
 * In front of every name: `<service>-<stage>`, and `-<fleet>` where a stage has more than one. osls reads functions from .js only.
 *
 * @param {{ resolveVariable: (address: string) => Promise<string> }} osls
 */
export async function name({ resolveVariable }) {
  const [service, stage, fleet] = await Promise.all(['self:service', 'sls:stage', 'param:fleet'].map(resolveVariable));
  // The shortest of all limits on what begins with it: 64 characters of a function's name.
  if (!/^([a-z0-9-]{1,20})?$/.test(fleet)) {
    throw new Error(`fleet: "${fleet}" must be of small letters, digits and hyphens, 20 at most`);
  }
  return [service, stage, fleet].filter((part) => part !== '').join('-');
}
