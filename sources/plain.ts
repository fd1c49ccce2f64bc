import { positionPlaceholder, type SourceProfile } from '../shared/source.ts';
import { closeVerdict, refusalVerdict, verdictParameters } from './verdicts.ts';

/** The default: every frame is data, nothing is numbered, nothing can be resumed. */
export const plain: SourceProfile = {
  name: 'plain',
  parameters: verdictParameters,
  resumes: false,
  problemWith: (wsUrl) =>
    wsUrl.includes(positionPlaceholder)
      ? `${positionPlaceholder} is filled in only for a source that numbers its messages: add "source": {"name": "numbered"}`
      : undefined,
  url: (wsUrl) => wsUrl,
  seqOf: () => undefined,
  onClose: closeVerdict,
  onRefused: refusalVerdict,
};
