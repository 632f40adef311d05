#!/usr/bin/env node
// Builds dist/: the program, and below dist/types/ the declarations for users of the package, which checks the types.
// Exit code 1 on an error of the compiler.
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { bundle, PROGRAM, TYPES } from './testing/bundle.mjs'
import { BUILD_INFO, compile } from './testing/compile.mjs'

/** False on an error. The compiler makes the declarations that changed, and all when there are none. */
function declare() {
  const dir = path.join(PROGRAM, TYPES)
  if (!fs.existsSync(path.join(dir, 'index.d.ts'))) fs.rmSync(BUILD_INFO, { force: true })
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
  const args = ['--emitDeclarationOnly', '--outDir', dir, '--incremental', '--tsBuildInfoFile', BUILD_INFO]
  return spawnSync(process.execPath, [tsc, '-p', 'tsconfig.json', ...args], { stdio: 'inherit' }).status === 0
}

if (!compile(['src']) || !(await bundle()) || !declare()) {
  console.error('build: failed')
  process.exitCode = 1
}
