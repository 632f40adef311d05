#!/usr/bin/env node
// Shows how members reach each other, in network namespaces with a DHT of their own: `npm run reach -- [part]...
// [--json]`. Parts: grid (pairs of three NAT kinds), udp (UDP blocked on one side), cuts (5, 15 and 75 s under numbered
// messages).
// Exit code 1 when a goal is missed or a part broke; 0 also where the machine makes no such namespaces.
import { parseArgs } from 'node:util'
import { summary, tableLines } from './bench/figures.mjs'
import { openLab, runProgram } from './bench/lab.mjs'
import { internetFault } from './reach/internet.mjs'

const PARTS = ['grid', 'udp', 'cuts']

function options() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { json: { type: 'boolean', default: false } }
  })
  const unknown = positionals.find((part) => !PARTS.includes(part))
  if (unknown !== undefined) throw new Error(`no such part: ${unknown}; there are ${PARTS.join(', ')}`)
  return { ...values, parts: positionals.length === 0 ? PARTS : positionals }
}

async function figuresOf(part) {
  const { figures } = await import(`./reach/${part}.mjs`)
  const lab = openLab()
  try {
    return await figures(lab, (line) => console.error(`${part}: ${line}`))
  } catch (error) {
    console.error(`${part}: ${error.stack}`)
    return [{ name: `${part}: it broke`, unit: '', goal: 0, samples: [1] }]
  } finally {
    await lab.close()
  }
}

async function main({ parts, json }) {
  const fault = internetFault()
  if (fault !== null) return console.log(json ? JSON.stringify({ skipped: fault }) : `skipped: ${fault}`)
  const figures = []
  for (const part of parts) figures.push(...(await figuresOf(part)).map(summary))
  if (json) console.log(JSON.stringify({ figures }))
  else for (const line of tableLines(figures)) console.log(line)
  if (figures.some(({ verdict }) => verdict === 'over')) process.exitCode = 1
}

await runProgram('reach', options, main)
