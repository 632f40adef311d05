import { once } from 'node:events'
import { createInterface } from 'node:readline/promises'
import type { Output } from './output.js'
import { terminalText } from './terminal.js'

/** Can a person be asked: are both ends a terminal? */
export function canAsk(output: Output): boolean {
  return process.stdin.isTTY && output.isNoteTerminal
}

/** Asks a person yes or no on the terminal; anything but yes is no. Ask only where {@link canAsk}. */
export async function confirm(question: string): Promise<boolean> {
  return /^y(?:es)?$/i.test((await askLine(`${question} [y/N] `)).trim())
}

/** Asks a person at the terminal for one line. '' when the input ends, also by Ctrl-D or Ctrl-C. */
export async function askLine(question: string): Promise<string> {
  const prompt = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = prompt.question(terminalText(question)).catch(() => '')
    return await Promise.race([answer, once(prompt, 'close').then(() => '')])
  } finally {
    prompt.close()
  }
}
