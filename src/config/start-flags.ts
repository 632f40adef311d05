import { constants, open } from 'node:fs/promises'
import path from 'node:path'
import { z } from 'zod'
import { fileReason } from '../kit/file-reason.js'
import { checkValue } from './candidate.js'
import { allSettings } from './settings.js'
import { REMEMBERED, type RememberedOption, type StartFlagTexts } from './start-options.js'

/** Bytes of the file: 64 directories of 4096 characters, each up to four bytes, and the other flags. */
const MAX_BYTES = 1_310_720

/** The flags of the last start, and the faults for which some or all were left out. */
export interface StoredStartFlags {
  readonly texts: StartFlagTexts
  readonly faults: readonly string[]
}

/** Version of the file. */
const VERSION = 1

const written = z.object({ version: z.int().min(1).optional() })
const stored = z.object({ flags: z.record(z.string().max(64), z.array(z.string().min(1).max(16_384)).min(1).max(64)) })

/** The value that a flag gives its setting, in the form of the config file. */
export function flagValue({ isList, isMany }: RememberedOption, texts: readonly string[]): unknown {
  if (isMany === true) return texts
  return isList === true ? texts[0]?.split(',') : texts[0]
}

/** The flags as the file of the home has them; '' for none. */
export function startFlagsText(texts: StartFlagTexts): string {
  return Object.keys(texts).length === 0 ? '' : `${JSON.stringify({ version: VERSION, flags: texts })}\n`
}

/**
 * Reads the flags of the last start. A damaged file, one of a newer version of this program, or a value that is not
 * allowed, is a fault; unknown flags are left out. Never throws.
 */
export async function readStartFlags(file: string): Promise<StoredStartFlags> {
  try {
    const text = await textOf(file)
    if (text === null) return { texts: {}, faults: [] }
    const value: unknown = JSON.parse(text)
    const { version = VERSION } = written.parse(value)
    return version > VERSION ? { texts: {}, faults: [newer(file, version)] } : checked(file, stored.parse(value).flags)
  } catch (error) {
    const isSystem = (error as NodeJS.ErrnoException).syscall !== undefined
    return { texts: {}, faults: [isSystem ? `${file} cannot be read: ${fileReason(error)}` : `${file} is damaged`] }
  }
}

function newer(file: string, version: number): string {
  return `${file} is of a newer version of a2a-node (form ${version}; this version reads ${VERSION})`
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
