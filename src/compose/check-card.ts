import fs from 'node:fs/promises'
import { fileReason } from '../kit/file-reason.js'
import { MAX_REMOTE_CARD_BYTES } from '../adapters/a2a/remote/remote-card.js'
import { type RemoteCardReport, checkCardText, checkRemoteCard, unread } from '../adapters/a2a/remote/remote-check.js'
import type { RemotePlace } from '../adapters/a2a/remote/remote-connect.js'
import { systemClock } from '../adapters/system/system-clock.js'
import type { Config } from '../config/settings.js'
import type { EnvValues } from '../config/env-values.js'
import { addressPolicy, secretOf } from './remote-net.js'

export type { RemoteCardReport } from '../adapters/a2a/remote/remote-check.js'

/** Config and environment of the checking process. */
export interface CardCheckSettings {
  readonly config: Pick<Config, 'a2a'>
  readonly env: EnvValues
}

/**
 * Checks the card at a URL without a node, as an import would read it: with the secret of `a2a.agents` for that URL.
 * Never rejects.
 */
export async function checkCardAt(card: string, { config, env }: CardCheckSettings): Promise<RemoteCardReport> {
  const net = { clock: systemClock(), policy: addressPolicy(config) }
  // The fetch has time limits of its own.
  return await checkRemoteCard(net, placeOf(card, config, env), new AbortController().signal)
}

/** Checks a card in a file of at most 256 KiB. Never rejects. */
export async function checkCardFile(file: string): Promise<RemoteCardReport> {
  try {
    return await checkCardText(await readCard(file))
  } catch (error) {
    return unread(`cannot be read: ${fileReason(error)}`, `must be a file of at most ${MAX_REMOTE_CARD_BYTES} bytes`)
  }
}

function placeOf(card: string, { a2a }: Pick<Config, 'a2a'>, env: EnvValues): RemotePlace {
  const [name, setting] = Object.entries(a2a.agents).find(([, one]) => one.card === card) ?? ['', null]
  // Nothing is called: only the card is read.
  const calls = { card, maxOutputBytes: 0, timeoutMs: 0 }
  if (setting === null) return { ...calls, secret: null, key: null }
  const { url, key, auth } = setting
  return { ...calls, url, key, secret: auth === null ? null : secretOf(name, auth, env) }
}

/** Is the file a card, not an agent file? By its name `.json`, or its first character, a brace. Never rejects. */
export async function isCardFile(file: string): Promise<boolean> {
  if (/\.json$/i.test(file)) return true
  const text = await readCard(file).catch(() => '')
  return /^\ufeff?\s*\{/.test(text)
}

async function readCard(file: string): Promise<string> {
  // Opening a pipe without a writer would wait.
  const handle = await fs.open(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK)
  try {
    const stat = await handle.stat()
    if (!stat.isFile()) throw new Error('it is not a file')
    if (stat.size > MAX_REMOTE_CARD_BYTES) throw new Error(`it has ${stat.size} bytes`)
    return await handle.readFile('utf8')
  } finally {
    await handle.close()
  }
}
