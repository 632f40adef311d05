// Compiles src/ and test/ into build/.
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

/** Where compiled tests stand. */
export const OUT = 'build'

/** False on a type error. */
export function compile() {
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
  fs.rmSync(OUT, { recursive: true, force: true })
  return spawnSync(process.execPath, [tsc, '-p', 'tsconfig.test.json', '--outDir', OUT], { stdio: 'inherit' }).status === 0
}

/** Compiles, then loads one compiled module. */
export function compileTests(file) {
  if (!compile()) throw new Error('the tests do not compile')
  return import(pathToFileURL(path.resolve(OUT, file)).href)
}
