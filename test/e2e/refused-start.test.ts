import { once } from 'node:events'
import { mkdir, readdir } from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import test from 'brittle'
import { spawned } from '../cli/command-line.js'
import { tempDir } from '../support/tmp.js'

test('a first start in the background that is refused leaves no home and no log behind', async (t) => {
  const home = path.join(await tempDir(t), 'home')
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as net.AddressInfo
  for (const isThere of [false, true]) {
    if (isThere) await mkdir(home, { mode: 0o700 })
    const { code, stderr } = await spawned(['start', '--detach', '--json', '--http', `127.0.0.1:${port}`], {
      home,
      env: { A2A_NODE_NETWORK_KIND: 'local' }
    })
    t.alike([code === 0, (JSON.parse(stderr) as { error: { code: string } }).error.code], [false, 'PORT_IN_USE'])
    t.alike(await readdir(home).catch(() => null), isThere ? [] : null)
  }
})
