#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif
import Tidemark

/// The process that is killed: it writes for ever, and says on its standard output how far.
struct KillChild {
  var directory: String
  var seed: UInt64

  func run() throws {
    let store = try Store.openBlocking(at: directory)
    let work = KillWork(seed: seed)
    var sequence = store.lastSequence
    try say(sequence)
    var sinceUpkeep = 0
    while true {
      let unit = work.unit(at: sequence + 1)
      var batch = WriteBatch()
      for (key, value) in zip(unit.keys, unit.values) { try batch.put(key, value) }
      try store.blocking.write(batch, durability: unit.isDurable ? .durable : .buffered)
      sequence += UInt64(unit.keys.count)
      try say(sequence)
      sinceUpkeep += 1
      if sinceUpkeep % 997 == 0 { try store.blocking.compact() }
      if sinceUpkeep % 401 == 0 { try store.blocking.snapshot() }
    }
  }

  /// Eight bytes go into a pipe whole or not at all.
  private func say(_ sequence: UInt64) throws {
    var word = sequence.littleEndian
    guard write(1, &word, 8) == 8 else {
      throw Files.Failure(description: "nobody listens any more")
    }
  }
}
