import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol

/// Groups among edits, priorities and dependencies, with a network that loses answers.
@Suite("Writes that apply together, in bad weather", .timeLimit(.minutes(20)))
struct AtomicStormTests {
  private static let keys = 6

  /// Groups by number, with how many keys they have.
  private func storm(
    _ seed: UInt64, _ resolver: ConflictResolver
  ) throws -> (world: SyncWorld, groups: [Int: Int]) {
    var generator = SeededGenerator(seed: seed)
    let world = try SyncWorld(seed: seed, resolver: resolver)
    var groups: [Int: Int] = [:]
    var written: [[UInt64]] = [[], []]
    for number in 0..<300 {
      let index = generator.int(below: 2)
      let key = "key \(generator.int(below: Self.keys))"
      let priority = Int64(generator.int(below: 3)) - 1
      let after = generator.chance(0.5) ? generator.pick(written[index]).map { [$0] } ?? [] : []
      switch generator.int(below: 20) {
      case 0..<4: try world.put(index, key, "p\(number):")
      case 4, 5:
        written[index].append(
          try world.write(index, key, "p\(number):", after: after, priority: priority))
      case 6..<9:
        var batch = WriteBatch(atomicAtPeer: true)
        let first = generator.int(below: Self.keys)
        let count = 1 + generator.int(below: 3)
        for member in 0..<count {
          try batch.put(
            "key \((first + member) % Self.keys)", "g\(number):",
            options: PutOptions(after: after, priority: generator.int(below: 3) - 1))
        }
        try world.commit(index, batch)
        groups[number] = count
      case 9: try world.delete(index, key)
      case 10: try world.restart(index, losesPower: false)
      default: try world.step(index, generator.pick(SyncWorld.Weather.allCases) ?? .fine)
      }
    }
    try end(world, seed)
    return (world, groups)
  }

  /// Lets everything come to rest; the user decides for what stands here.
  private func end(_ world: SyncWorld, _ seed: UInt64) throws {
    var isOver = false
    for _ in 0..<40 where !isOver {
      try world.settle(mayStop: true)
      isOver = true
      for device in world.devices {
        for (change, state) in try device.session.waitingForUser() where state == .needsDecision {
          try device.session.decide(change.key, .local)
          isOver = false
        }
      }
    }
    for device in world.devices {
      let outbox = device.session.outbox
      // A change that comes after one that waits for the user is blocked by that.
      #expect(outbox.pending.isEmpty || !outbox.waiting.isEmpty, "seed \(seed): \(device.name)")
      #expect(device.session.isAtRest, "seed \(seed): \(device.name)")
    }
  }

  /// Sends what was given up once more, until nothing is left of it.
  private func retryAll(_ world: SyncWorld, _ seed: UInt64) throws {
    for _ in 0..<40 where world.devices.contains(where: { !$0.session.outbox.waiting.isEmpty }) {
      for device in world.devices {
        for (change, _) in try device.session.waitingForUser() {
          _ = try device.session.retry([change.sequence])
        }
      }
      try end(world, seed)
    }
  }

  /// The keys on which each group was applied, by its number.
  private func applied(_ world: SyncWorld) throws -> [Int: Set<[UInt8]>] {
    try world.server.withEngine { engine in
      var found: [Int: Set<[UInt8]>] = [:]
      var cursor = LogCursor(engine.reader, from: 1, through: engine.reader.lastSequence)
      while let entry = try cursor.next() {
        guard entry.head.kind == .put,
          let value = try ReplicationLog(engine).change(at: entry.sequence).map({
            try ReplicationLog(engine).content(of: $0).value
          }
          )
        else { continue }
        let text = String(decoding: value, as: UTF8.self)
        guard text.hasPrefix("g"), let number = Int(text.dropFirst().prefix { $0 != ":" }) else {
          continue
        }
        found[number, default: []].insert(entry.key)
      }
      return found
    }
  }

  @Test(
    "every group applies whole, and all devices end equal", arguments: 1...12 as ClosedRange<UInt64>
  )
  func localWins(seed: UInt64) throws {
    let (world, groups) = try storm(seed, ConflictResolver(deleteEdit: .resolve) { _ in .local })
    let applied = try applied(world)
    for (number, count) in groups {
      #expect(applied[number]?.count == count, "seed \(seed), group \(number)")
    }
    try world.expectEqual("seed \(seed)")
  }

  @Test(
    "a group of which a change gives way applies nowhere", arguments: 21...32 as ClosedRange<UInt64>
  )
  func remoteWins(seed: UInt64) throws {
    let (world, groups) = try storm(seed, .remoteWins)
    for (number, keys) in try applied(world) {
      #expect(keys.count == groups[number], "seed \(seed), group \(number)")
    }
    try retryAll(world, seed)
    try world.expectEqual("seed \(seed)")
  }

  @Test("all devices end equal after merges", arguments: 41...52 as ClosedRange<UInt64>)
  func merges(seed: UInt64) throws {
    let union = ConflictResolver(deleteEdit: .resolve) { conflict in
      guard let local = conflict.local, let remote = conflict.remote else { return .local }
      let parts = Set((local.value + [32] + remote.value).split(separator: 32).map(Array.init))
      let all = parts.sorted { $0.lexicographicallyPrecedes($1) }.joined(separator: [32])
      return .merged(SyncContent(value: Array(all)))
    }
    let (world, _) = try storm(seed, union)
    try world.expectEqual("seed \(seed)")
  }
}
