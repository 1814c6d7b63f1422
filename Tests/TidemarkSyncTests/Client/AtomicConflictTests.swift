import Testing
import Tidemark
import TidemarkEngine

@testable import TidemarkSync
@testable import TidemarkSyncProtocol

/// A write that applies at the peer as a whole, and of which a change meets another's.
@Suite("Conflicts of writes that apply together")
struct AtomicConflictTests {
  private static let base = #"{"x":0,"y":0}"#
  private static let mine = #"{"x":1,"y":0}"#
  private static let theirs = #"{"x":0,"y":1}"#
  private static let both = #"{"x":1,"y":1}"#

  /// A device has sent a group, and another has changed keys of it before that came.
  private func meeting(
    _ resolver: ConflictResolver, theirs keys: [String] = ["a"], refusing refused: String? = nil,
    isSent: Bool = true, then: (SyncWorld) throws -> Void = { _ in }
  ) throws -> SyncWorld {
    let world = try SyncWorld(resolver: resolver)
    if let refused { world.refuse(prefix: refused) }
    for key in keys { try world.put(0, key, Self.base) }
    try world.settle()
    try world.writeTogether(
      0, [("a", Self.mine), ("b", keys.contains("b") ? Self.mine : "2"), ("c", "2")])
    if isSent { #expect(try world.nextPush(0)?.changes.count == 3) }
    for key in keys { try world.put(1, key, Self.theirs) }
    try world.settle(only: 1)
    try then(world)
    if isSent { try world.step(0) }
    return world
  }

  @Test("a merged value goes with the rest of its group, in one batch")
  func merged() throws {
    let world = try meeting(.mergeFields())
    let push = try #require(try world.nextPush(0))
    #expect(push.changes.map(\.name) == ["a", "b", "c"])
    #expect(Set(push.changes.map(\.atomicGroup)).count == 1)
    #expect(push.changes.first?.atomicGroup != 0)
    try world.settle()
    #expect(try world.serverState() == ["a": Self.both + " ", "b": "2 ", "c": "2 "])
    try world.expectEqual()
  }

  @Test("a change that another has made alike does not hold the rest of its group back")
  func alike() throws {
    let world = try SyncWorld()
    try world.writeTogether(0, [("a", "1"), ("b", "1")])
    try world.put(1, "a", "1")
    try world.settle(only: 1)
    try world.settle()
    #expect(try world.serverState() == ["a": "1 ", "b": "1 "])
    try world.expectEqual()
  }

  @Test("a merged value does not go alone when another of its group was refused")
  func mergedAndRefused() throws {
    let world = try meeting(.mergeFields(), refusing: "c")
    try world.settle()
    #expect(try world.serverState() == ["a": Self.theirs + " "])
    #expect(world.devices[0].session.outbox.waiting.count == 3)
    #expect(try world.get(0, "a") == Self.both)
    for (change, _) in try world.devices[0].session.waitingForUser() where change.key != [99] {
      _ = try world.devices[0].session.retry([change.sequence])
    }
    try world.settle()
    #expect(try world.serverState() == ["a": Self.both + " ", "b": "2 "])
  }

  @Test("a merged value is left to the user when another of its group was given up")
  func mergedAndGivenUp() throws {
    let merge = ConflictResolver.mergeFields()
    let world = try meeting(
      ConflictResolver { $0.key == "a" ? .remote : merge.resolve($0) },
      theirs: ["a", "b"])
    try world.settle()
    #expect(try world.serverState() == ["a": Self.theirs + " ", "b": Self.theirs + " "])
    let session = world.devices[0].session
    #expect(session.outbox.waiting.count == 2)
    #expect(session.outbox.waiting.values.contains(.needsDecision))
    try session.decide(
      Array("b".utf8), .merged(SyncContent(value: Array(Self.both.utf8))))
    try world.settle()
    #expect(try world.serverState() == ["a": Self.theirs + " ", "b": Self.both + " "])
  }

  @Test("a later group of a companion's key goes with its own when the companion is written anew")
  func laterGroup() throws {
    let world = try SyncWorld(resolver: .mergeFields())
    for key in ["a", "k"] { try world.put(0, key, Self.base) }
    try world.settle()
    try world.writeTogether(0, [("a", Self.mine), ("k", Self.mine)])
    try world.writeTogether(0, [("k", Self.mine), ("m", "1")])
    for key in ["a", "k"] { try world.put(1, key, Self.theirs) }
    try world.settle(only: 1)
    try world.settle()
    #expect(
      try world.serverState() == ["a": Self.both + " ", "k": Self.both + " ", "m": "1 "])
    try world.expectEqual()
  }

  @Test("a change that gives way takes along what was written before it, also across a group")
  func givesWay() throws {
    let world = try SyncWorld(resolver: .remoteWins)
    for round in 0..<2 {
      try world.put(1, "k", "1")
      try world.settle(only: 1)
      try world.delete(1, "k")
      try world.settle(only: 1)
      guard round == 0 else { break }
      try world.settle()
      try world.put(0, "k", "plain")
      try world.writeTogether(0, [("k", "2"), ("m", "2")])
    }
    try world.settle()
    #expect(try world.serverState().isEmpty)
    #expect(try world.get(0, "k") == nil)
  }

  @Test("several of a group can be merged", arguments: [true, false])
  func severalMerged(isSent: Bool) throws {
    let world = try meeting(.mergeFields(), theirs: ["a", "b"], isSent: isSent)
    var groups: Set<Int> = []
    while let push = try world.nextPush(0) {
      groups.insert(push.changes.count)
      try world.step(0)
    }
    #expect(groups == [3])
    try world.settle()
    #expect(
      try world.serverState() == ["a": Self.both + " ", "b": Self.both + " ", "c": "2 "])
    try world.expectEqual()
  }

  @Test("a change kept under another key goes with the rest of its group")
  func keptBoth() throws {
    let world = try meeting(.keepBoth())
    let push = try #require(try world.nextPush(0))
    #expect(push.changes.map(\.name) == ["a (local)", "b", "c"])
    #expect(Set(push.changes.map(\.atomicGroup)).count == 1)
    try world.settle()
    #expect(
      try world.serverState() == [
        "a": Self.theirs + " ", "a (local)": Self.mine + " ", "b": "2 ", "c": "2 ",
      ])
    try world.expectEqual()
  }

  @Test("a key of a group that was edited since lets the group go, and then the edit")
  func editedSince() throws {
    let world = try meeting(.localWins) { try $0.put(0, "a", "later") }
    var pushes: [[String]] = []
    while let push = try world.nextPush(0) {
      pushes.append(push.changes.map(\.name))
      try world.step(0)
    }
    #expect(pushes == [["a", "b", "c"], ["a"]])
    #expect(try world.serverState() == ["a": "later ", "b": "2 ", "c": "2 "])
    try world.settle()
    try world.expectEqual()
  }

  @Test("a merged value takes the place of an edit made since, too")
  func mergedEdit() throws {
    let edit = #"{"x":2,"y":0}"#
    let world = try meeting(.mergeFields()) { try $0.put(0, "a", edit) }
    try world.settle()
    #expect(
      try world.serverState() == ["a": #"{"x":2,"y":1}"# + " ", "b": "2 ", "c": "2 "])
    try world.expectEqual()
  }

  @Test("an edit of a key that the user is asked about decides for the group, too")
  func decidedByEdit() throws {
    let world = try meeting(.ask)
    try world.settle()
    #expect(try world.serverState() == ["a": Self.theirs + " "])
    try world.put(0, "a", "mine")
    try world.settle()
    #expect(try world.serverState() == ["a": "mine ", "b": "2 ", "c": "2 "])
    try world.expectEqual()
  }

  @Test("a group goes as a whole or not at all, however the user decides", arguments: 0...3)
  func decided(choice: Int) throws {
    let world = try meeting(.ask) { try $0.put(0, "a", "later") }
    try world.settle()
    #expect(try world.serverState() == ["a": Self.theirs + " "])
    let session = world.devices[0].session
    let key = Array("a".utf8)
    let merged = SyncContent(value: Array("merged".utf8))
    let decisions: [ConflictResolution] = [
      .local, .remote, .merged(merged), .both(localKey: "copy"),
    ]
    try session.decide(key, decisions[choice])
    try world.settle()
    let expected: [[String: String]] = [
      ["a": "later ", "b": "2 ", "c": "2 "], ["a": Self.theirs + " "],
      ["a": "merged ", "b": "2 ", "c": "2 "],
      ["a": Self.theirs + " ", "copy": "later ", "b": "2 ", "c": "2 "],
    ]
    #expect(try world.serverState() == expected[choice])
    // A change that was given up stays here until the user says what becomes of it.
    #expect(session.outbox.waiting.count == (choice == 1 ? 2 : 0))
  }
}
