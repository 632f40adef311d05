import { readFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { isRecord } from '../../kit/json.js'
import { shellWord } from '../../kit/text.js'
import { ownRoot } from './own-package.js'

/** How another machine gets this program. */
export interface Installation {
  /** The file that must be there first, and its place or the command that makes it; null for a published package. */
  readonly needs: string | null
  /** Installs the program on another machine, in the directory of the copied file. */
  readonly command: string
  /** Installs it on this machine. */
  readonly here: string
}

interface PackageManifest {
  readonly name: string
  readonly version: string
  readonly 'a2a-node'?: unknown
}

/**
 * Reads from the package at `root` how another machine installs it: `"a2a-node": {"published": true}` in its
 * package.json makes its name one of the registry. Else the packed file is needed: where it was installed from, or in
 * the repository, or yet to be made.
 */
export async function installation(root: string = ownRoot()): Promise<Installation> {
  const {
    name,
    version,
    'a2a-node': own
  } = JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8')) as PackageManifest
  const install = (what: string): string => `npm install --global ${what}`
  if (isRecord(own) && own['published'] === true) return { needs: null, command: install(name), here: install(name) }
  const packed = `${name}-${version}.tgz`
  const command = install(`./${packed}`)
  const modules = path.dirname(path.resolve(root))
  const isInstalled = path.basename(modules) === 'node_modules'
  const file = isInstalled ? await installedFrom(path.dirname(modules), name) : path.join(path.resolve(root), packed)
  if (file !== null && existsSync(file)) return { needs: shellWord(file), command, here: install(shellWord(file)) }
  const source = isInstalled ? 'the packed file of this version' : `npm pack ${shellWord(path.resolve(root))}`
  return { needs: `${packed} (${source})`, command, here: command }
}

/**
 * The packed file that the directory of a project, or of npx, was given; null where npm keeps none, as for a global
 * installation.
 */
async function installedFrom(project: string, name: string): Promise<string | null> {
  try {
    const { dependencies } = JSON.parse(await readFile(path.join(project, 'package.json'), 'utf8')) as Record<
      string,
      unknown
    >
    const [, place] = /^file:(.+\.tgz)$/.exec(isRecord(dependencies) ? String(dependencies[name]) : '') ?? []
    return place === undefined ? null : path.resolve(project, place)
  } catch {
    return null
  }
}

/** Lines for a person: how another machine joins the mesh of this node. `code`: the end of the last line. */
export function joinLines({ needs, command }: Omit<Installation, 'here'>, code = ''): readonly [string, string] {
  const place = needs === null ? '' : `, with a copy of ${needs}`
  return [`On another machine${place}:`, `  ${command} && a2a-node start --join -${code}`]
}
