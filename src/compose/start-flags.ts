import fs from 'node:fs/promises'
import { replaceFile, readIfThere } from '../adapters/storage/home/atomic-file.js'
import { startFlagsText, type StartFlagTexts } from '../config/start-flags.js'
import { messageOf } from '../kit/errors.js'
import type { Problem } from '../ports/node-api.js'
import type { Telemetry } from '../ports/telemetry.js'

/** The flags of a start, for the next start of the home. */
export interface StartMemory {
  readonly texts: StartFlagTexts
  /** Faults for which flags of the last start are not in force. */
  readonly faults: readonly string[]
}

/** Writes the flags of a start that succeeded into its home (0600). A failure is logged: the node runs all the same. */
export async function rememberFlags(file: string, { texts }: StartMemory, telemetry: Pick<Telemetry, 'log'>): Promise<void> {
  const text = startFlagsText(texts)
  try {
    if ((await readIfThere(file).catch(() => undefined)) === text) return
    if (text === '') await fs.rm(file, { force: true })
    else await replaceFile(file, text)
  } catch (error) {
    telemetry.log('warn', 'the flags of this start could not be remembered', { file, reason: messageOf(error) })
  }
}

/** Flags of the last start that are not in force, for `status`. */
export function memoryProblems({ faults }: StartMemory): readonly Problem[] {
  return faults.map((fault) => ({
    code: 'STORE_DAMAGED',
    message: `${fault}, so flags of the last start are not in force: stop the node, and start it with them`,
    next: 'a2a-node config show'
  }))
}
