import Tidemark

/// The process that is killed: it writes for ever, and says on its standard output how far.
struct KillChild {
  var directory: String
  var seed: UInt64

  func run() throws {
    let store = try Store.openBlocking(at: directory)
    let work = KillWork(seed: seed)
    var sequence = store.lastSequence
    try Said.word(sequence)
    var sinceUpkeep = 0
    while true {
      let unit = work.unit(at: sequence + 1)
      var batch = WriteBatch()
      for (key, value) in zip(unit.keys, unit.values) { try batch.put(key, value) }
      try store.blocking.write(batch, durability: unit.isDurable ? .durable : .buffered)
      sequence += UInt64(unit.keys.count)
      try Said.word(sequence)
      sinceUpkeep += 1
      if sinceUpkeep % 997 == 0 { try store.blocking.compact() }
      if sinceUpkeep % 401 == 0 { try store.blocking.snapshot() }
    }
  }
}
