// Bundles build/src/ into dist/: the entries of the package and the chunks that they share, all in one directory.
// Reasons: docs/decisions/0028-bundle-the-program.md.
import fs from 'node:fs'
import path from 'node:path'
import { rolldown } from 'rolldown'
import { OUT } from './compile.mjs'
import { isRequired, REQUIRED } from './required.mjs'

/** Declarations for users of the package, within dist/. */
export const TYPES = 'types'
/** Where the program stands. */
export const PROGRAM = 'dist'
/**
 * What is loaded by its name: by users of the package, by bin/, and as a process of its own. A file that starts one
 * finds it beside itself, in build/src/ and in dist/ alike.
 */
const ENTRIES = {
  index: 'index.js',
  client: 'client.js',
  agent: 'agent.js',
  testing: 'testing.js',
  main: 'cli/main.js',
  'mcp-serve': 'cli/mcp/main.js',
  'guard-main': 'adapters/agents/process/guard-main.js',
  'module-main': 'adapters/agents/module/module-main.js'
}
/** Packages stay outside: npm installs them. */
const isPackage = /^[^./]/

/** Node.js keeps the source of a file in memory: two bytes for each character of a file with any beyond Latin-1. */
const ASCII = {
  name: 'ascii',
  generateBundle(_options, files) {
    for (const file of Object.values(files))
      if (file.type === 'chunk')
        file.code = file.code.replaceAll(
          /[^\0-\x7f]/g,
          (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
        )
  }
}

/** Writes dist/ anew from the compiled sources; files of an earlier bundle go. False on an error, which it prints. */
export async function bundle() {
  try {
    const written = await write()
    for (const name of fs.readdirSync(PROGRAM))
      if (name !== TYPES && !written.has(name)) fs.rmSync(path.join(PROGRAM, name), { recursive: true })
    return true
  } catch (error) {
    console.error(error.message)
    return false
  }
}

/** The names of the files. */
async function write() {
  const root = path.resolve(OUT, 'src')
  const input = Object.fromEntries(Object.entries(ENTRIES).map(([name, file]) => [name, path.join(root, file)]))
  const build = await rolldown({
    input,
    platform: 'node',
    external: (id) => isPackage.test(id) && !isRequired(id),
    plugins: [REQUIRED, ASCII],
    // A file may be imported for its effects.
    treeshake: false,
    // Several modules have one lazily and others at once: it is then in the chunk of the others.
    checks: { ineffectiveDynamicImport: false }
  })
  const { output } = await build.write({
    dir: PROGRAM,
    comments: false,
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js'
  })
  await build.close()
  return new Set(output.map(({ fileName }) => fileName))
}
