import fs from 'node:fs/promises'
import path from 'node:path'
import { isRecord } from '../kit/json.js'

/** Packages of one installation, at most; more are left alone. */
const MAX_PACKAGES = 5000

/** The part of one package that this machine never uses. */
export interface UnusedPart {
  /** Name of the package. */
  readonly name: string
  /** Absolute path of the package. */
  readonly dir: string
  /** Directories of binaries for other platforms, binaries for the runtime Bare, and source maps: absolute paths. */
  readonly paths: readonly string[]
  readonly bytes: number
}

/** The machine, as directories of prebuilt binaries name it. */
export interface Platform {
  readonly platform: string
  readonly arch: string
}

/**
 * The unused parts of the package at `root` and of all packages that it depends on, the largest first: prebuilt
 * binaries for other platforms, where one for this platform is there, those for the runtime Bare, which Node never
 * loads, and source maps. Links are not followed, and packages that `root` does not depend on are left alone. Rejects
 * where a directory cannot be read.
 */
export async function unusedParts(root: string, { platform, arch }: Platform): Promise<UnusedPart[]> {
  const parts: UnusedPart[] = []
  for (const [dir, name] of await packagesOf(root)) {
    const found = { paths: [] as string[], bytes: 0 }
    await findUnused(dir, `${platform}-${arch}`, found)
    if (found.paths.length > 0) parts.push({ name, dir, ...found })
  }
  return parts.sort((one, other) => other.bytes - one.bytes)
}

/** Removes them. Rejects at the first one that cannot be removed; a second run goes on. */
export async function removeUnused(parts: readonly UnusedPart[]): Promise<void> {
  for (const { paths } of parts) for (const one of paths) await fs.rm(one, { recursive: true, force: true })
}

/** The directories of a package and of all its dependencies, with their names. */
async function packagesOf(root: string): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  const waiting = [await fs.realpath(root)]
  for (let dir = waiting.pop(); dir !== undefined && found.size < MAX_PACKAGES; dir = waiting.pop()) {
    if (found.has(dir)) continue
    const manifest = await manifestOf(dir)
    if (manifest === null) continue
    found.set(dir, manifest.name)
    for (const name of manifest.dependencies) waiting.push(...(await directoryOf(name, dir)))
  }
  return found
}

async function manifestOf(
  dir: string
): Promise<{ readonly name: string; readonly dependencies: readonly string[] } | null> {
  const text = await fs.readFile(path.join(dir, 'package.json'), 'utf8').catch(() => null)
  if (text === null) return null
  const json: unknown = JSON.parse(text)
  if (!isRecord(json)) return null
  const tables = [json['dependencies'], json['optionalDependencies'], json['peerDependencies']]
  const dependencies = tables.flatMap((table) => (isRecord(table) ? Object.keys(table) : []))
  return { name: String(json['name']), dependencies }
}

/** Where Node finds a package from a directory: in the nearest node_modules that has it. */
async function directoryOf(name: string, from: string): Promise<string[]> {
  for (let dir = from; ; dir = path.dirname(dir)) {
    const place = path.join(dir, 'node_modules', name)
    const found = await fs.lstat(place).catch(() => null)
    // A linked package is somebody's working copy.
    if (found !== null) return found.isDirectory() ? [place] : []
    if (dir === path.dirname(dir)) return []
  }
}

async function findUnused(
  dir: string,
  host: string,
  found: { readonly paths: string[]; bytes: number }
): Promise<void> {
  for (const entry of await fs.readdir(dir, { withFileTypes: true })) {
    const place = path.join(dir, entry.name)
    if (entry.isFile() && /\.[cm]?[jt]s\.map$/.test(entry.name)) await note(place, found)
    // Nested packages are found by the dependency on them.
    if (!entry.isDirectory() || entry.name === 'node_modules') continue
    if (entry.name === 'prebuilds') for (const other of await unusedIn(place, host)) await note(other, found)
    else await findUnused(place, host, found)
  }
}

/** The directories of binaries for other platforms, and files for Bare; none where this platform has no directory. */
async function unusedIn(prebuilds: string, host: string): Promise<string[]> {
  const names = (await fs.readdir(prebuilds, { withFileTypes: true }))
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
  if (!names.includes(host)) return []
  // A variant of this platform, such as another C library, may be the one in use.
  const isOwn = (name: string): boolean => name === host || name.startsWith(`${host}-`)
  const own = await Promise.all(names.filter(isOwn).map((name) => bareIn(path.join(prebuilds, name))))
  return [...names.filter((name) => !isOwn(name)).map((name) => path.join(prebuilds, name)), ...own.flat()]
}

async function bareIn(dir: string): Promise<string[]> {
  const entries = await fs.readdir(dir, { withFileTypes: true })
  return entries.filter((one) => one.isFile() && one.name.endsWith('.bare')).map(({ name }) => path.join(dir, name))
}

async function note(place: string, found: { readonly paths: string[]; bytes: number }): Promise<void> {
  found.paths.push(place)
  found.bytes += await bytesOf(place)
}

async function bytesOf(place: string): Promise<number> {
  const stat = await fs.lstat(place)
  if (!stat.isDirectory()) return stat.size
  let bytes = 0
  for (const name of await fs.readdir(place)) bytes += await bytesOf(path.join(place, name))
  return bytes
}
