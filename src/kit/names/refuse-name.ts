import { type ErrorCode, NodeError } from '../errors.js'
import { shellWord } from '../text.js'
import { nameFault, type NameForm, nameRule } from './rule.js'

/** Fields of the error of a refused name. */
export interface NameRefusal {
  readonly code: ErrorCode
  /** The subject with the name, e.g. `--name`; it begins the message. */
  readonly label: string
  /** Makes the command that sets a name, from the name as a shell takes it. Absent: the caller adds the command. */
  readonly command?: (name: string) => string
}

/** Refuses an invalid new name, with the cause and a corrected command. @throws NodeError the given code */
export function refuseName(text: string, form: NameForm, { code, label, command }: NameRefusal): void {
  const fault = nameFault(text, form)
  if (fault === null) return
  const { reason, instead } = fault
  const hint = instead === null ? '' : ` (did you mean ${instead}?)`
  const next =
    command === undefined ? {} : { data: fault, next: [command(instead === null ? '<name>' : shellWord(instead))] }
  throw new NodeError(code, `${label}: ${reason}${hint}; ${nameRule(form)}`, next)
}
