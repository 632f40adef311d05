import test from 'brittle'
import { agentEnvironment } from '../../../../src/adapters/agents/files/environment.js'

test('an agent sees PATH, HOME, LANG, TMPDIR, the home of its node and the variables that its file names, nothing else', (t) => {
  const own = {
    PATH: '/bin',
    HOME: '/h',
    LANG: 'C',
    TMPDIR: '/t',
    A2A_NODE_HOME: '/n',
    AWS_SECRET: 'x',
    NODE_OPTIONS: '--inspect'
  }
  t.alike(agentEnvironment(own, { CI: '1' }), {
    PATH: '/bin',
    HOME: '/h',
    LANG: 'C',
    TMPDIR: '/t',
    A2A_NODE_HOME: '/n',
    CI: '1'
  })
})

test('the file has precedence, and a variable that the node lacks is not invented', (t) => {
  t.alike(agentEnvironment({ PATH: '/bin' }, { PATH: '/opt/bin' }), { PATH: '/opt/bin' })
})
