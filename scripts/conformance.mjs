#!/usr/bin/env node
// Lets the official MCP conformance runner loose on our HTTP endpoint: `npm run conformance [-- --verbose]`. It needs
// Node 22, and the package registry; without Node 22 it says so and ends with 0. Exit code 1 when something fails that
// is not expected to (test/conformance/expected-failures.yml), or passes that is.
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { fetchRunner, nodeForRunner, RUNS } from './conformance/runner.mjs'
import { compileTests } from './testing/compile.mjs'

const EXPECTED = path.resolve('test/conformance/expected-failures.yml')

/** Runs the runner. Resolves with its exit code and what it printed. */
function run(node, args, cwd) {
  return new Promise((resolve, reject) => {
    const child = spawn(node, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, NO_COLOR: '1' } })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        output += text
      })
    }
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, output }))
  })
}

/** One run, against an endpoint of its own. Prints its summary; true when all went as expected. */
async function conforms({ node, program, serve, dir, isVerbose }, { version, args }) {
  const endpoint = await serve()
  try {
    const results = path.join(dir, 'results')
    const all = [
      'server',
      '--url',
      endpoint.url.href,
      ...args,
      '--expected-failures',
      EXPECTED,
      '--output-dir',
      results
    ]
    const { code, output } = await run(node, [program, ...all], dir)
    const at = output.indexOf('=== SUMMARY ===')
    console.log(`\nconformance ${version} ${args.join(' ')}: exit code ${code}`)
    console.log(isVerbose || at === -1 ? output : output.slice(at).trim())
    return code === 0
  } finally {
    await endpoint.close()
  }
}

async function main() {
  const { values } = parseArgs({ options: { verbose: { type: 'boolean', default: false } } })
  const { node, skipped } = nodeForRunner({
    execPath: process.execPath,
    version: process.versions.node,
    env: process.env
  })
  if (skipped !== undefined) return console.log(`skipped: ${skipped}`)
  const { serveConformance: serve } = await compileTests('test/conformance/endpoint.js')
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'a2a-conformance-'))
  process.on('exit', () => fs.rmSync(dir, { recursive: true, force: true }))
  const programs = new Map(
    [...new Set(RUNS.map(({ version }) => version))].map((version) => [version, fetchRunner(version, dir)])
  )
  let failed = 0
  for (const one of RUNS) {
    const isGood = await conforms(
      { node, program: programs.get(one.version), serve, dir, isVerbose: values.verbose },
      one
    )
    if (!isGood) failed++
  }
  console.log(`\n${RUNS.length - failed} of ${RUNS.length} runs as expected`)
  process.exitCode = failed === 0 ? 0 : 1
}

await main()
