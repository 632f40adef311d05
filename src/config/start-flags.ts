import { constants, open } from 'node:fs/promises'
import path from 'node:path'
import { z } from 'zod'
import { fileReason } from '../kit/file-reason.js'
import { checkValue } from './candidate.js'
import { allSettings } from './settings.js'

/** Bytes of the file: 64 directories of 4096 characters, each up to four bytes, and the other flags. */
const MAX_BYTES = 1_310_720

/**
 * An option of `start`: the setting of a flag that the next start uses again, or the reason why it is good for one run
 * only.
 */
export type StartOption = { readonly flag: string } & (
  | { readonly setting: string; readonly isList?: true; readonly isMany?: true }
  | { readonly perRun: string }
)

/** Every option of `start`. `isList`: comma-separated. `isMany`: repeated, and added to the setting. */
export const START_OPTIONS: readonly StartOption[] = [
  { flag: '--network', setting: 'network.kind' },
  { flag: '--bootstrap', setting: 'network.bootstrap', isList: true },
  { flag: '--serve-bootstrap', setting: 'network.serveBootstrap' },
  { flag: '--agents', setting: 'agents.dirs', isMany: true },
  { flag: '--http', setting: 'http.listen' },
  { flag: '--name', perRun: 'the mesh keeps the name of a member, and its admins may change it' },
  { flag: '--join', perRun: 'an invite code is a secret, and a home joins once' },
  { flag: '--detach', perRun: 'it is the way to run one process' },
  { flag: '--report-ready', perRun: 'it belongs to the process that started this one' },
  { flag: '--join-once', perRun: 'it belongs to --join' },
  { flag: '--timeout', perRun: 'it bounds the wait of one join' }
]

/** A flag that the next start uses again. */
export type RememberedOption = Extract<StartOption, { readonly setting: string }>

/** The flags that the next start uses again. */
export const REMEMBERED: readonly RememberedOption[] = START_OPTIONS.filter((one) => 'setting' in one)

/**
 * The texts of remembered flags by flag (`--http`); one text each but for `--agents`, whose directories are absolute.
 */
export type StartFlagTexts = Readonly<Record<string, readonly string[]>>

/** The flags of the last start, and the faults for which some or all were left out. */
export interface StoredStartFlags {
  readonly texts: StartFlagTexts
  readonly faults: readonly string[]
}

const stored = z.object({ flags: z.record(z.string().max(64), z.array(z.string().min(1).max(16_384)).min(1).max(64)) })

/** The value that a flag gives its setting, in the form of the config file. */
export function flagValue({ isList, isMany }: RememberedOption, texts: readonly string[]): unknown {
  if (isMany === true) return texts
  return isList === true ? texts[0]?.split(',') : texts[0]
}

/** The flags as the file of the home has them; '' for none. */
export function startFlagsText(texts: StartFlagTexts): string {
  return Object.keys(texts).length === 0 ? '' : `${JSON.stringify({ version: 1, flags: texts })}\n`
}

/**
 * Reads the flags of the last start. A damaged file, or a value that is not allowed, is a fault; unknown flags are left
 * out. Never throws.
 */
export async function readStartFlags(file: string): Promise<StoredStartFlags> {
  try {
    const text = await textOf(file)
    return text === null ? { texts: {}, faults: [] } : checked(file, stored.parse(JSON.parse(text)).flags)
  } catch (error) {
    const isSystem = (error as NodeJS.ErrnoException).syscall !== undefined
    return { texts: {}, faults: [isSystem ? `${file} cannot be read: ${fileReason(error)}` : `${file} is damaged`] }
  }
}

/** @throws Error of the file system, or for a file that `start` did not write */
async function textOf(file: string): Promise<string | null> {
  // Opening a pipe without a writer would wait.
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: unknown) => {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return null
    throw error
  })
  try {
    const stats = await handle?.stat()
    if (stats !== undefined && (!stats.isFile() || stats.size > MAX_BYTES)) throw new Error('not a file of start')
    return (await handle?.readFile('utf8')) ?? null
  } finally {
    await handle?.close()
  }
}

function checked(file: string, flags: StartFlagTexts): StoredStartFlags {
  const given = REMEMBERED.flatMap((one) =>
    Object.hasOwn(flags, one.flag) ? [{ one, texts: flags[one.flag] ?? [] }] : []
  )
  const [good, bad] = [given.filter((each) => isAllowed(each)), given.filter((each) => !isAllowed(each))]
  return {
    texts: Object.fromEntries(good.map(({ one, texts }) => [one.flag, texts])),
    faults: bad.map(({ one }) => `the value of ${one.flag} in ${file} is not allowed`)
  }
}

function isAllowed({ one, texts }: { readonly one: RememberedOption; readonly texts: readonly string[] }): boolean {
  const setting = allSettings().find(({ path: name }) => name === one.setting)
  if (setting === undefined || !checkValue(flagValue(one, texts), setting).ok) return false
  return one.isMany === true ? texts.every((dir) => path.isAbsolute(dir)) : texts.length === 1
}
