#!/usr/bin/env -S MALLOC_ARENA_MAX=2 node
// glibc gives each thread places of its own to allocate from, eight for each core, and takes none of them back: under load the
// memory of a node grew by 8 % an hour, with two places by less than half of that. It reads this before any program runs.
//
// Plain syntax up to the import: an old Node must be able to read this far.
var version = process.versions.node.split('.').map(Number)
if (version[0] < 20 || (version[0] === 20 && version[1] < 19)) {
  process.stderr.write('error: a2a-node needs Node 20.19 or later, this is ' + process.versions.node + '  [CONFIG_INVALID]\n')
  process.stderr.write('  try: https://nodejs.org/en/download\n')
  process.exitCode = 78
} else {
  var module = process.getBuiltinModule('module')
  if (module.enableCompileCache) module.enableCompileCache()
  import('../dist/cli/main.js').then(
    function (cli) {
      return cli.main(process.argv.slice(2))
    },
    function (error) {
      process.stderr.write('error: the program is not complete: ' + error.message + '  [INTERNAL]\n  try: npm run build\n')
      process.exitCode = 70
    }
  )
}
