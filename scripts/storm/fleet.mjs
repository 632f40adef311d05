import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../bench/lab.mjs'
import { inTurn, inviteFor, localEnv, untilTrue } from '../bench/nodes.mjs'
import { oneOf } from './chance.mjs'
import { Mortal } from './mortal.mjs'
import { placeWitness } from './witness.mjs'

const APART = fileURLToPath(new URL('../bench/apart.mjs', import.meta.url))
/** Share of kills that hit the start after a kill as well. */
const TWICE = 0.15

/** Who is there and which pairs never get a link. The first node is never without a way to the last. */
export const LAYOUTS = {
  'mesh-3': { names: ['a', 'b', 'c'], apart: [] },
  'chain-3': { names: ['a', 'b', 'c'], apart: [['a', 'c']] },
  'mesh-4': { names: ['a', 'b', 'c', 'd'], apart: [] },
  // Each of two has two relays to the node opposite.
  'ring-4': {
    names: ['a', 'b', 'c', 'd'],
    apart: [
      ['a', 'c'],
      ['b', 'd']
    ]
  }
}

/** Nodes with a witness each, in processes of their own, that are killed and started again. */
export class Fleet {
  names
  #nodes
  #apart

  constructor(nodes, { names, apart }) {
    this.names = names
    this.#nodes = nodes
    this.#apart = apart
  }

  /** How many processes were killed. */
  get kills() {
    return [...this.#nodes.values()].reduce((sum, node) => sum + node.kills, 0)
  }

  /** Resolves with the API of a node, once it is up. */
  api(name) {
    return this.#nodes.get(name).api()
  }

  /** Any other node. */
  otherThan(name, chance) {
    return oneOf(
      this.names.filter((one) => one !== name),
      chance
    )
  }

  /** Kills one by chance, by SIGKILL, and starts it again. */
  async crashOne(chance) {
    await this.#nodes.get(oneOf(this.names, chance)).crash(chance() < TWICE ? chance() * 600 : null)
  }

  /** Pairs that have a link all the same: the filter did not hold, so nothing was shown of relays. */
  async strayLinks() {
    const stray = []
    for (const [from, to] of this.#apart) {
      const { peers } = await (await this.api(from)).call('peers.list', { all: true })
      if (peers.some(({ name, status }) => name === to && status === 'online'))
        stray.push(`${from} and ${to} have a link`)
    }
    return stray
  }

  /** Codes of problems that the nodes report. */
  async problems() {
    const found = []
    for (const name of this.names) {
      const { problems } = await (await this.api(name)).call('node.status', {})
      found.push(...problems.map(({ code }) => `${name}: ${code}`))
    }
    return found
  }
}

/**
 * Starts the nodes of a layout; resolves when each knows the witness of every other. `http`: the port of the first
 * one's gateway.
 */
export async function openFleet(lab, { layout, port, witness }) {
  const { names, apart } = LAYOUTS[layout]
  const homes = Object.fromEntries(names.map((name) => [name, path.join(lab.dir(), 'h')]))
  const http = await freePort()
  const nodes = new Map(names.map((name, at) => [name, new Mortal(lab, optionsOf(name, at))]))
  function optionsOf(name, at) {
    const env = {
      ...localEnv(port),
      A2A_NODE_A2A_ALLOW_PRIVATE: '127.0.0.1',
      REFUSED_LINKS: `${homes[name]}.apart`,
      NODE_OPTIONS: `--import ${APART}`
    }
    return { home: homes[name], name, env, args: at === 0 ? ['--http', String(http)] : [] }
  }
  for (const home of Object.values(homes)) placeWitness(home, witness)
  const [first, ...others] = names
  const founder = await nodes.get(first).start()
  await inTurn(others, async (name) => nodes.get(name).start(await inviteFor(founder)))
  await separate({ nodes, homes, apart })
  const fleet = new Fleet(nodes, { names, apart })
  await Promise.all(names.map((name) => allKnown(fleet, name)))
  return { fleet, gateway: `http://127.0.0.1:${http}` }
}

/** Ends the links between nodes that are to have none, and starts all again. */
async function separate({ nodes, homes, apart }) {
  const keys = new Map([...nodes].map(([name, node]) => [name, node.info.node.id]))
  await Promise.all([...nodes.values()].map((node) => node.stop()))
  for (const name of nodes.keys()) {
    const refused = apart
      .filter((pair) => pair.includes(name))
      .map((pair) => keys.get(pair.find((one) => one !== name)))
    fs.writeFileSync(`${homes[name]}.apart`, refused.join('\n'))
  }
  await Promise.all([...nodes.values()].map((node) => node.start()))
}

async function allKnown(fleet, name) {
  const api = await fleet.api(name)
  const known = async () => {
    const { agents } = await api.call('agents.list', { origin: 'remote' })
    return agents.filter(({ id }) => id === 'witness').length === fleet.names.length - 1
  }
  await untilTrue(known, `${name} knows the agents of all others`)
}
