import { NodeError } from '../kit/errors.js'
import type { Options } from './options.js'
import { type CommandRow, GLOBAL_OPTIONS } from './terminal/table.js'

/** Longest texts in characters, by the name of the argument or option; the node takes no longer ones. */
const LONGEST: Readonly<Record<string, number>> = {
  peer: 256,
  agent: 256,
  id: 256,
  doc: 128,
  capability: 128,
  goal: 65_536,
  reason: 256
}
/** Longest texts that travel in the header of a message, in bytes of UTF-8. */
const LONGEST_BYTES: Readonly<Record<string, number>> = { justification: 1024 }
/** An argument that may be empty: a message without words. */
const MAY_BE_EMPTY = 'text'

/**
 * Refuses words of a command line that no command takes: empty ones, and names and texts that are too long.
 * @throws NodeError USAGE
 */
export function checkTyped(spec: CommandRow, args: readonly string[], options: Options): void {
  const names = (spec.args ?? '').match(/[\w-]+/g) ?? []
  names.forEach((name, i) => checkText(name, `<${name}>`, args[i]))
  const flags = [...GLOBAL_OPTIONS, ...(spec.options ?? [])].flatMap((one) => one.flags.match(/--[\w-]+/g) ?? [])
  for (const [name, value] of Object.entries(options)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      checkText(name, `--${kebab(name)}`, one)
      // `--join $CODE --detach` with an empty variable.
      if (flags.includes(String(one))) throw new NodeError('USAGE', noValueText(`--${kebab(name)}`, String(one)))
    }
  }
}

/** The fault of an option without a value. `next`: the word after it. */
export function noValueText(option: string, next?: string): string {
  return `${option} has no value${next === undefined ? '' : `: ${next} follows it`}`
}

function checkText(name: string, label: string, value: unknown): void {
  if (typeof value !== 'string') return
  if (value.trim() === '' && name !== MAY_BE_EMPTY) throw new NodeError('USAGE', `${label} must not be empty`)
  const max = LONGEST[name]
  if (max !== undefined && value.length > max)
    throw new NodeError('USAGE', `${label} takes at most ${max} characters, not ${value.length}`)
  const bytes = Buffer.byteLength(value)
  const maxBytes = LONGEST_BYTES[name]
  if (maxBytes !== undefined && bytes > maxBytes)
    throw new NodeError('USAGE', `${label} takes at most ${maxBytes} bytes, not ${bytes}`)
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
