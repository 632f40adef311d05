import { createInterface } from 'node:readline/promises'
import type { Output } from './output.js'

/** Can a person be asked: are both ends a terminal? */
export function canAsk({ err }: Output): boolean {
  return process.stdin.isTTY && err.isTTY === true
}

/** Asks a person yes or no on the terminal; anything but yes is no. Ask only where {@link canAsk}. */
export async function confirm(question: string): Promise<boolean> {
  const prompt = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = await prompt.question(`${question} [y/N] `)
    return /^y(?:es)?$/i.test(answer.trim())
  } finally {
    prompt.close()
  }
}
