import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { addNamespace, ip, namespaceFault } from '../bench/netns.mjs'

/** Kinds of NAT. `open`: none. `preserving`: keeps the port of the host. `random`: another one for each destination. */
export const KINDS = ['open', 'preserving', 'random']

/** Nodes of the DHT; a host knows its own NAT by the answers of several. */
const DHT_NODES = 6
/** Port of each of them. */
const DHT_PORT = 29_737
const DHT_MAIN = path.join(path.dirname(fileURLToPath(import.meta.url)), 'dht-main.mjs')

/** Why no such internet can be made here, or null. */
export function internetFault() {
  const fault = namespaceFault()
  if (fault !== null) return fault
  if (spawnSync('nft', ['--version']).status !== 0) return 'needs the command nft (apt-get install nftables)'
  const name = `a2ar-${process.pid}`
  try {
    spawnSync('ip', ['netns', 'add', name])
    nft(name, 'add table ip nat; add chain ip nat out { type nat hook postrouting priority srcnat; }')
    nft(name, 'add rule ip nat out masquerade fully-random')
    return null
  } catch (error) {
    return `needs NAT in network namespaces, which this system refuses: ${error.message}`
  } finally {
    spawnSync('ip', ['netns', 'del', name])
  }
}

let internets = 0

/**
 * A network of public addresses with a DHT of its own. Nothing of it reaches the real network. It goes with the lab.
 */
export async function openInternet(lab) {
  const id = `a2ar-${process.pid}-${internets++}`
  const hub = `${id}-hub`
  addNamespace(lab, hub)
  ip(hub, ['link', 'add', 'br0', 'type', 'bridge'])
  ip(hub, ['link', 'set', 'br0', 'up'])
  const net = { lab, id, hub, used: 0 }
  const core = attach(net, `${id}-core`)
  const others = Array.from({ length: DHT_NODES - 1 }, () => nextAddress(net))
  for (const address of others) ip(core.namespace, ['address', 'add', `${address}/24`, 'dev', 'wan'])
  const bootstrap = [core.address, ...others].map((address) => `${address}:${DHT_PORT}`)
  await openDht(lab, core.namespace, bootstrap)
  return { bootstrap, host: (kind) => addHost(net, kind) }
}

async function openDht(lab, namespace, bootstrap) {
  const through = [...throughOf(namespace), process.execPath, DHT_MAIN, ...bootstrap]
  const child = lab.spawn(through[0], through.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] })
  await new Promise((resolve, reject) => {
    child.stdout.once('data', resolve)
    child.once('exit', () => reject(new Error('the DHT nodes ended before they were ready')))
  })
}

function addHost(net, kind) {
  const name = `${net.id}-${net.used}`
  const wan = attach(net, kind === 'open' ? name : `${name}-nat`)
  const host = { kind, address: wan.address, namespace: name, through: throughOf(name) }
  if (kind !== 'open') addNat(net, { router: wan.namespace, name, kind })
  nft(name, 'add table ip cut; add chain ip cut out { type filter hook output priority 0; }')
  return {
    ...host,
    /** Drops every frame from and to this host. Its carrier stays up. */
    unplug: (isCut) => ip(net.hub, ['link', 'set', 'dev', wan.port, ...(isCut ? ['nomaster'] : ['master', 'br0'])]),
    /** Drops every UDP packet that this host sends to others. */
    blockUdp: (isBlocked) =>
      nft(name, isBlocked ? 'add rule ip cut out oifname != "lo" meta l4proto udp drop' : 'flush chain ip cut out')
  }
}

/** A host behind its own router, which lets in only answers. */
function addNat({ lab, used }, { router, name, kind }) {
  addNamespace(lab, name)
  const lan = `192.168.${used}`
  ip(router, ['link', 'add', 'lan', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name])
  ip(router, ['address', 'add', `${lan}.1/24`, 'dev', 'lan'])
  ip(router, ['link', 'set', 'lan', 'up'])
  ip(name, ['address', 'add', `${lan}.2/24`, 'dev', 'eth0'])
  ip(name, ['link', 'set', 'eth0', 'up'])
  ip(name, ['route', 'add', 'default', 'via', `${lan}.1`])
  run('ip', ['netns', 'exec', router, 'sh', '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward'])
  nft(router, 'add table ip nat; add chain ip nat out { type nat hook postrouting priority srcnat; }')
  nft(router, `add rule ip nat out oifname "wan" masquerade ${kind === 'random' ? 'fully-random' : ''}`)
  nft(router, 'add table ip gate')
  for (const hook of ['input', 'forward']) {
    nft(router, `add chain ip gate ${hook} { type filter hook ${hook} priority 0; }`)
    nft(router, `add rule ip gate ${hook} iifname "wan" ct state != { established, related } drop`)
  }
}

/** A namespace with the interface `wan` and a public address. */
function attach(net, namespace) {
  const address = nextAddress(net)
  const port = `p${net.used}`
  addNamespace(net.lab, namespace)
  ip(net.hub, ['link', 'add', port, 'type', 'veth', 'peer', 'name', 'wan', 'netns', namespace])
  ip(namespace, ['address', 'add', `${address}/24`, 'dev', 'wan'])
  ip(namespace, ['link', 'set', 'wan', 'up'])
  ip(net.hub, ['link', 'set', port, 'master', 'br0', 'up'])
  return { namespace, address, port }
}

/** Not one of the ranges that are kept for documents: some programs take those for no real addresses. */
function nextAddress(net) {
  return `44.77.0.${++net.used}`
}

/** What a command line begins with to run in a namespace. */
function throughOf(namespace) {
  return ['ip', 'netns', 'exec', namespace]
}

function nft(namespace, text) {
  run('ip', ['netns', 'exec', namespace, 'nft', text])
}

function run(command, args) {
  const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr.trim()}`)
}
