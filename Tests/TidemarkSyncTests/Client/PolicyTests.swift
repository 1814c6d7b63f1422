import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

/// Devices that pull before they push meet the other's change themselves: the server's policy for a
/// collection is theirs.
@Suite("The policy of a collection at its clients", .timeLimit(.minutes(20)))
struct PolicyTests {
  /// A world of three devices, each with a clock of its own, that hold `s/k` and `n/k`; later
  /// commits win below `s/`.
  private func world(
    resolver: ConflictResolver = .byPolicy, ahead lead: Duration = .zero
  ) throws -> SyncWorld {
    let world = try SyncWorld(devices: 0, resolver: resolver)
    for name in ["first", "second", "third"] {
      let clock = ManualClock()
      if name == "first" { clock.advance(by: lead) }
      try world.addDevice(name, clock: clock)
    }
    try world.server.handler().setPolicy(.lastWriterWins, forKeysWithPrefix: "s/")
    for key in ["s/k", "n/k"] { try world.put(0, key, "base") }
    try world.settle()
    pass(world, 600)
    return world
  }

  private func pass(_ world: SyncWorld, _ seconds: Int) {
    for clock in [world.clock] + world.devices.map(\.clock) { clock.advance(by: .seconds(seconds)) }
  }

  private func change(_ world: SyncWorld, _ index: Int, _ key: String, _ value: String?) throws {
    if let value { try world.put(index, key, value) } else { try world.delete(index, key) }
  }

  /// The value that is there in the end, at the server and at all devices.
  private func end(_ world: SyncWorld, _ key: String) throws -> String? {
    try world.settle()
    try world.expectEqual()
    return try world.serverState()[key].map { String($0.dropLast()) }
  }

  /// Two changes, and whether the later one is sent first.
  struct Race: Sendable {
    var earlier: String?
    var later: String?
    var isLaterFirst: Bool
  }

  private static let races = [true, false].flatMap { (isLaterFirst: Bool) -> [Race] in
    [
      Race(earlier: "one", later: "two", isLaterFirst: isLaterFirst),
      Race(earlier: "one", later: nil, isLaterFirst: isLaterFirst),
      Race(earlier: nil, later: "two", isLaterFirst: isLaterFirst),
    ]
  }

  @Test("the later commit stays, whichever is sent first", arguments: races)
  func laterWins(race: Race) throws {
    let world = try world()
    try change(world, 0, "s/k", race.earlier)
    pass(world, 30)
    try change(world, 1, "s/k", race.later)
    pass(world, 30)
    for index in race.isLaterFirst ? [1, 0] : [0, 1] { try world.settle(only: index) }
    #expect(try end(world, "s/k") == race.later)
  }

  @Test(
    "without a policy, or with a resolver of the program's own, local changes stay as before",
    arguments: ["n/k", "s/k"])
  func others(key: String) throws {
    let world = try world(resolver: key == "n/k" ? .byPolicy : .localWins)
    try world.put(0, key, "earlier")
    pass(world, 30)
    try world.put(1, key, "later")
    try world.settle(only: 1)
    #expect(try end(world, key) == "earlier")
  }

  @Test(
    "a clock that is ahead wins for a minute at most, whether it stays so or is set right",
    arguments: [2, 3_600, 86_400 * 400], [false, true])
  func ahead(seconds: Int, isSetRight: Bool) throws {
    let world = try world(ahead: .seconds(seconds))
    try world.put(0, "s/k", "earlier")
    pass(world, 61)
    if isSetRight { world.devices[0].clock.jump(by: .seconds(-seconds)) }
    try world.put(1, "s/k", "later")
    try world.settle(only: 1)
    pass(world, 600)
    // A device whose clock was set right before it syncs still has commit times that lie ahead;
    // they count as now at most, so the other change, which is later, wins.
    let isUnknown = isSetRight && seconds > 60
    #expect(try end(world, "s/k") == (isUnknown ? "earlier" : "later"))

    // The feed stamps the entry with the time at which it took it.
    try world.put(0, "s/k", "ahead")
    try world.settle(only: 0)
    pass(world, 61)
    try world.put(2, "s/k", "last")
    #expect(try end(world, "s/k") == "last")
  }

  @Test("an entry of a writer in the future loses to a change that is made after it has come")
  func fromTheFuture() throws {
    let world = try world(ahead: .seconds(86_400))
    try world.put(0, "s/k", "future")
    try world.settle(only: 0)
    pass(world, 61)
    // This device writes without having pulled the other change.
    try world.put(1, "s/k", "later")
    #expect(try end(world, "s/k") == "later")
  }

  @Test("a policy that is set, changed or taken back counts from the next hello on")
  func changed() throws {
    let world = try world()
    var number = 0
    func race(_ key: String) throws -> String? {
      number += 1
      try world.put(0, key, "earlier \(number)")
      pass(world, 30)
      try world.put(1, key, "later \(number)")
      try world.settle(only: 1)
      return try end(world, key).map { String($0.prefix { $0 != " " }) }
    }
    #expect(try race("n/k") == "earlier")
    try world.server.handler().setPolicy(.lastWriterWins, forKeysWithPrefix: "")
    #expect(try race("n/k") == "later")
    try world.server.handler().setPolicy(.detect, forKeysWithPrefix: "n/")
    #expect(try race("n/k") == "earlier")
    try world.server.handler().setPolicy(nil, forKeysWithPrefix: "n/")
    #expect(try race("n/k") == "later")
    // Also after a restart, with the conflict found before.
    try world.restart(0)
    #expect(try race("n/k") == "later")
  }

  @Test("a hello tells the policies that matter within the caller's reach, and no others")
  func reach() throws {
    let bench = Bench()
    for prefix in ["", "a/", "a/1/", "b/", "secret/"] {
      try bench.handler().setPolicy(.lastWriterWins, forKeysWithPrefix: prefix)
    }
    func told(_ access: SyncAccess) throws -> [String] {
      try bench.handler().hello(HelloRequest(replica: Device(1).id), access: access).policies
        .map(\.prefix.text).sorted()
    }
    #expect(try told(.everything).count == 5)
    #expect(try told(SyncAccess(to: SyncScope(keyPrefixes: ["a/1/x"]))) == ["", "a/", "a/1/"])
    #expect(try told(SyncAccess(to: SyncScope(keyPrefixes: ["a"]))) == ["", "a/", "a/1/"])
    #expect(try told(SyncAccess(to: SyncScope(keyPrefixes: ["b/"]))) == ["", "b/"])
    #expect(try told(SyncAccess(to: SyncScope())).isEmpty)
    // A label may stand at any key.
    #expect(try told(SyncAccess(to: SyncScope(labels: ["l"]))).count == 5)
  }

  @Test("policies that do not fit into a hello are refused, and those that were set stay")
  func tooMany() throws {
    let bench = Bench()
    for number in 0..<1_024 {
      try bench.handler().setPolicy(.lastWriterWins, forKeysWithPrefix: "\(number)/")
    }
    func set(_ prefix: String) -> TidemarkError.Code? {
      do { try bench.handler().setPolicy(.detect, forKeysWithPrefix: prefix) } catch {
        return (error as? TidemarkError)?.code
      }
      return nil
    }
    #expect(set("more/") == .limitExceeded && set("7/") == nil)
    try bench.handler().setPolicy(nil, forKeysWithPrefix: "8/")
    #expect(set(String(repeating: "x", count: 40_000)) == .limitExceeded)
    #expect(set("more/") == nil)
    #expect(try bench.handler().hello(HelloRequest(replica: Device(1).id)).policies.count == 1_024)
  }
}
