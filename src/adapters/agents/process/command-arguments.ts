import { isRecord } from '../../../kit/json.js'

/** `{input.path.to.value}`: the only placeholder; every other brace is literal. */
const PLACEHOLDER = /\{input((?:\.[^\s{}.]+)+)\}/g

/** Does the text hold a placeholder? */
export function hasPlaceholder(text: string): boolean {
  return text.search(PLACEHOLDER) !== -1
}

/**
 * Puts values of the input in the place of `{input.path}`. A value stays inside its argument, whatever it holds:
 * nothing is split and nothing is quoted. Numbers and booleans become text, lists and objects compact JSON; a
 * missing (or null) value and a NUL character are refused with a reason.
 */
export function fillArguments(
  command: readonly string[],
  input: unknown
): { readonly ok: true; readonly command: readonly string[] } | { readonly ok: false; readonly reason: string } {
  const missing: string[] = []
  const filled = command.map((argument) =>
    argument.replace(PLACEHOLDER, (_whole, dotted: string) => {
      const value = valueAt(input, dotted.slice(1).split('.'))
      if (value === undefined || value === null) missing.push(`input${dotted}`)
      return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
    })
  )
  if (missing.length > 0)
    return {
      ok: false,
      reason: `the input has no value for ${[...new Set(missing)].join(', ')}, which the agent's command needs`
    }
  const bad = filled.findIndex((argument) => argument.includes('\0'))
  if (bad !== -1)
    return { ok: false, reason: `the input puts a NUL character into argument ${bad} of the agent's command` }
  return { ok: true, command: filled }
}

function valueAt(input: unknown, steps: readonly string[]): unknown {
  let value = input
  for (const step of steps) {
    if (Array.isArray(value)) value = /^\d{1,9}$/.test(step) ? (value[Number(step)] as unknown) : undefined
    else value = isRecord(value) && Object.hasOwn(value, step) ? value[step] : undefined
  }
  return value
}
