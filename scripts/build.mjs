#!/usr/bin/env node
// Compiles src/ into a fresh dist/. Exit code: the compiler's.
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { createRequire } from 'node:module'

const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')

rmSync('dist', { recursive: true, force: true })
const { status } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.json'], { stdio: 'inherit' })
if (status !== 0) console.error('build: failed')
process.exitCode = status ?? 1
