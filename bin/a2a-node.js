#!/usr/bin/env -S MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=32768 MALLOC_TRIM_THRESHOLD_=131072 node
// By default glibc has eight arenas for each core and keeps freed memory in them: of 143 MiB that a node held after a
// load, 119 were free. With two arenas, and blocks from 32 KiB on mapped by themselves, it returns them. Chunks of
// messages have 64 KiB: with a threshold of 128 KiB a node held 70 MiB of freed ones after some minutes. It reads this
// before any program runs.
//
// Plain syntax up to the import: an old Node must be able to read this far.
var version = process.versions.node.split('.').map(Number)
if (version[0] < 20 || (version[0] === 20 && version[1] < 19)) {
  process.stderr.write(
    'error: a2a-node needs Node 20.19 or later, this is ' + process.versions.node + '  [CONFIG_INVALID]\n'
  )
  process.stderr.write('  try: https://nodejs.org/en/download\n')
  process.exitCode = 78
} else {
  hideCode()
  var module = process.getBuiltinModule('module')
  var cache = process.env.NODE_DISABLE_COMPILE_CACHE ? null : cacheDirectory()
  if (module.enableCompileCache && cache !== null) module.enableCompileCache(cache)
  // A client waits for this command each time that it starts.
  var isServe = process.argv[2] === 'mcp' && process.argv[3] === 'serve'
  var entry = isServe ? import('../dist/mcp-serve.js') : import('../dist/main.js')
  entry.then(
    function (cli) {
      return cli.main(process.argv.slice(2))
    },
    function (error) {
      process.stderr.write(
        'error: the program is not complete: ' + error.message + '  [INTERNAL]\n  try: npm run build\n'
      )
      process.exitCode = 70
    }
  )
}

/** Arguments can be read by every user of the machine: those of a `start` with an invite code are taken away. */
function hideCode() {
  for (var i = 2; i < process.argv.length; i++) {
    if (/^--join(?:$|=)/.test(process.argv[i])) process.title = 'a2a-node start'
  }
}

/**
 * Where compiled code of this program is kept between runs. Whoever could write there could run code as this user, so
 * every directory on the way belongs to this user or to root, and the last one is nobody else's. null: there is none,
 * and nothing is kept.
 */
function cacheDirectory() {
  var fs = process.getBuiltinModule('fs')
  var os = process.getBuiltinModule('os')
  var path = process.getBuiltinModule('path')
  var uid = process.getuid ? process.getuid() : null
  try {
    var xdg = process.env.XDG_CACHE_HOME
    var base = xdg && path.isAbsolute(xdg) ? xdg : path.join(os.homedir(), '.cache')
    // Where users have no numbers the directories of each are closed to others.
    if (uid !== null && fs.statSync(existing(fs, path, base)).uid !== uid) return null
    var directory = path.join(base, 'a2a-node', 'compiled')
    fs.mkdirSync(directory, { recursive: true, mode: 448 })
    if (uid === null) return directory
    var place = fs.realpathSync(directory)
    if (!isOwn(fs.lstatSync(place), uid, 63)) return null
    for (var one = path.dirname(place); ; one = path.dirname(one)) {
      var stats = fs.lstatSync(one)
      // In a sticky directory nobody can move what is another's.
      if (!isOwn(stats, uid, stats.mode & 512 ? 0 : 18) && !isOwn(stats, 0, stats.mode & 512 ? 0 : 18)) return null
      if (one === path.dirname(one)) return place
    }
  } catch (error) {
    // Without such a place nothing is kept. Old versions, which get no further than the check of theirs, need the name.
    void error
    return null
  }
}

/** The nearest directory on the way to a place that is there. */
function existing(fs, path, place) {
  return fs.existsSync(place) || place === path.dirname(place) ? place : existing(fs, path, path.dirname(place))
}

function isOwn(stats, uid, forbidden) {
  return stats.uid === uid && (stats.mode & forbidden) === 0
}
