#!/usr/bin/env node
// Compiles src/ into dist/: what changed since the last build, and everything when an output is missing. Exit code: the
// compiler's.
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { BUILD_INFO } from './testing/compile.mjs'

const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')

function below(root) {
  if (!fs.existsSync(root)) return []
  const entries = fs.readdirSync(root, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)))
}

const sources = below('src').filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))
const outputs = new Set(sources.flatMap((file) => [file.replace(/\.ts$/, '.js'), file.replace(/\.ts$/, '.d.ts')]))
const found = new Set(below('dist'))
for (const file of found) if (!outputs.has(file)) fs.rmSync(path.join('dist', file))
if ([...outputs].some((file) => !found.has(file))) fs.rmSync(BUILD_INFO, { force: true })
const args = [tsc, '-p', 'tsconfig.json', '--incremental', '--tsBuildInfoFile', BUILD_INFO]
const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' })
if (status !== 0) console.error('build: failed')
process.exitCode = status ?? 1
