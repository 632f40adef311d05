import { spawnSync } from 'node:child_process'
import os from 'node:os'

/** Why no network namespaces can be made here, or null. */
export function namespaceFault() {
  if (os.platform() !== 'linux') return 'needs Linux (network namespaces)'
  if (process.getuid?.() !== 0) return 'needs root (network namespaces)'
  if (spawnSync('ip', ['-V']).status !== 0) return 'needs the command ip (apt-get install iproute2)'
  const name = `a2ab-${process.pid}`
  const made = spawnSync('ip', ['netns', 'add', name], { encoding: 'utf8' })
  if (made.status !== 0) return `needs network namespaces, which this system refuses: ${made.stderr.trim()}`
  spawnSync('ip', ['netns', 'del', name])
  return null
}

let islands = 0

/**
 * A switch with so many hosts on it: a namespace that holds a bridge, and a namespace for each host with one address on
 * it.
 * Nothing of it reaches the real network. It goes with the lab.
 */
export function openIsland(lab, hosts) {
  const id = `a2ab-${process.pid}-${islands++}`
  const hub = `${id}-hub`
  addNamespace(lab, hub)
  ip(hub, ['link', 'add', 'br0', 'type', 'bridge'])
  ip(hub, ['link', 'set', 'br0', 'up'])
  return Array.from({ length: hosts }, (_none, index) =>
    addHost(lab, { hub, namespace: `${id}-${index}`, number: index + 1 })
  )
}

function addHost(lab, { hub, namespace, number }) {
  const port = `p${number}`
  const address = `10.77.0.${number}`
  addNamespace(lab, namespace)
  ip(hub, ['link', 'add', port, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace])
  ip(namespace, ['address', 'add', `${address}/24`, 'dev', 'eth0'])
  ip(namespace, ['link', 'set', 'eth0', 'up'])
  ip(hub, ['link', 'set', port, 'master', 'br0', 'up'])
  return {
    address,
    /** What a command line begins with to run on this host. */
    through: ['ip', 'netns', 'exec', namespace],
    /** Drops every frame between hosts that are isolated; all others still reach them. Carriers stay up. */
    isolate: (isCut) => ip(hub, ['link', 'set', 'dev', port, 'type', 'bridge_slave', 'isolated', isCut ? 'on' : 'off']),
    /** Drops every frame from and to this host. Its carrier stays up. */
    unplug: (isCut) => ip(hub, ['link', 'set', 'dev', port, ...(isCut ? ['nomaster'] : ['master', 'br0'])])
  }
}

/** A network namespace that goes with the lab. */
export function addNamespace(lab, name) {
  run(['netns', 'add', name])
  lab.onClose('ip', ['netns', 'del', name])
  ip(name, ['link', 'set', 'lo', 'up'])
}

/** Runs `ip` in a namespace. */
export function ip(namespace, args) {
  run(['-n', namespace, ...args])
}

function run(args) {
  const { status, stderr } = spawnSync('ip', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`ip ${args.join(' ')}: ${stderr.trim()}`)
}
