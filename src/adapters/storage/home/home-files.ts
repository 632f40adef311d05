import fs from 'node:fs/promises'
import path from 'node:path'
import { codeOf } from './store-errors.js'
import type { BackupPart } from './backup-file.js'
import { documentTexts } from './node-store.js'

/** Where the files of a node lie, as `HomePaths` has them. */
export interface HomeFiles {
  readonly home: string
  readonly agents: string
  readonly configFile: string
  readonly policyFile: string
  readonly audit: string
  readonly auditSeen: string
}

/**
 * Documents of the home that are not taken along: the new ledger has a mark of its own, and tokens revoked since would
 * work again.
 */
const LEFT_OUT = new Set(['ledger', 'tokens'])
/** Files of the home beside its documents. */
const NOTES = ['policy.seen', 'start.flags']

/** The directory of settings, rules and agents; without `--home` it is not that of the data. */
export function configDir({ configFile }: Pick<HomeFiles, 'configFile'>): string {
  return path.dirname(configFile)
}

/**
 * The content of a home beside its stores, as parts of a backup. Documents and notes are `home/...`; settings, rules
 * and agent files are `config/...`. The audit log is a snapshot of one moment. Links, sockets and other special files
 * are left out. Flush the audit log before.
 * @throws NodeError STORE_DAMAGED when a document has no whole file
 */
export async function* homeParts(files: HomeFiles): AsyncGenerator<BackupPart> {
  // Read before the sizes are: a head must not name a line that is left out.
  const heads: BackupPart[] = []
  for (const { name, mode } of (await filesBelow(files.audit)).filter(isHead))
    for await (const part of partOf(path.join(files.audit, name), { name: `home/audit/${name}`, mode }))
      heads.push(part)
  // Lines are only appended, so this length of each file is the log as it was now.
  const audit = (await filesBelow(files.audit)).filter((one) => !isHead(one))
  yield* heads
  const seen = path.relative(files.home, files.auditSeen)
  for (const { name, size, mode } of audit)
    yield* partOf(path.join(files.audit, name), { name: `home/audit/${name}`, size, mode })
  for (const { name, text } of await documentTexts(files.home, LEFT_OUT))
    yield { name: `home/${name}.json`, bytes: Buffer.from(text), mode: 0o600 }
  for (const name of [...NOTES, seen]) yield* partOf(path.join(files.home, name), { name: `home/${name}` })
  for (const file of [files.configFile, files.policyFile])
    yield* partOf(file, { name: `config/${path.relative(configDir(files), file)}` })
  for (const { name, mode } of await filesBelow(files.agents)) {
    yield* partOf(path.join(files.agents, name), { name: `config/agents/${name}`, mode })
  }
}

function isHead({ name }: FoundFile): boolean {
  return name.endsWith('.head')
}

interface FoundFile {
  /** Relative, with slashes. */
  readonly name: string
  readonly size: number
  readonly mode: number
}

/** Plain files below a directory, in the order of their names. */
export async function filesBelow(dir: string): Promise<FoundFile[]> {
  const entries = await fs.readdir(dir, { recursive: true, withFileTypes: true }).catch(noneIfAbsent)
  const found: FoundFile[] = []
  for (const entry of entries) {
    if (!entry.isFile()) continue
    const file = path.join(entry.parentPath, entry.name)
    const { size, mode } = await fs.stat(file)
    found.push({ name: path.relative(dir, file).split(path.sep).join('/'), size, mode })
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : 1))
}

function noneIfAbsent(error: unknown): [] {
  if (codeOf(error) === 'ENOENT') return []
  throw error
}

async function* partOf(
  file: string,
  { name, size, mode = 0o600 }: { readonly name: string; readonly size?: number; readonly mode?: number }
): AsyncGenerator<BackupPart> {
  try {
    const bytes = await fs.readFile(file)
    yield { name, bytes: bytes.subarray(0, size ?? bytes.byteLength), mode }
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
}
