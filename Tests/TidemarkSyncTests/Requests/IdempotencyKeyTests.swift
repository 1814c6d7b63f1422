import Foundation
import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkREST
@testable import TidemarkSync
@testable import TidemarkSyncProtocol

@Suite("The idempotency keys of changes")
struct IdempotencyKeyTests {
  private let store = [UInt8](repeating: 7, count: 16)

  private func change(_ text: String = "one") -> PushedChange {
    PushedChange(
      sequence: 12, kind: .put, key: [1, 2],
      content: SyncContent(value: Array(text.utf8), labels: ["b", "a"]), commitTime: 99)
  }

  @Test("a key is a UUID in its canonical form, and is read in upper case as well")
  func form() throws {
    var generator = SeededGenerator(seed: 3)
    for number in 0..<100 {
      var change = change("\(number)")
      change.sequence = UInt64(generator.int(below: 1 << 48))
      let key = IdempotencyKey(change, of: store)
      for key in [key, key.salted(by: UInt64(number))] {
        let uuid = try #require(UUID(uuidString: key.text))
        #expect(uuid.uuidString.lowercased() == key.text)
        #expect(IdempotencyKey(key.text) == key && IdempotencyKey(uuid.uuidString) == key)
        let digits = Array(key.text)
        #expect(digits[14] == "8" && "89ab".contains(digits[19]))
      }
      #expect(key.sequence == change.sequence && key.salt == 0)
      #expect(key.salted(by: 4).hash == key.hash && key.salted(by: 4) != key.salted(by: 6))
    }
  }

  @Test(
    "another change has another key, and so has the same in another store",
    arguments: [
      { $0.sequence += 1 }, { $0.commitTime += 1 }, { $0.kind = .delete }, { $0.key = [1] },
      { $0.content.value = [] }, { $0.content.labels = ["a"] }, { $0.content.hash = [] },
      { $0.content.maxAge = .seconds(0) },
      {
        $0.content.attachment = AttachmentReference(
          sha256: [UInt8](repeating: 1, count: 32), length: 5)
      },
    ] as [@Sendable (inout PushedChange) -> Void])
  func differs(_ edit: @Sendable (inout PushedChange) -> Void) {
    var other = change()
    edit(&other)
    #expect(IdempotencyKey(other, of: store) != IdempotencyKey(change(), of: store))
    #expect(IdempotencyKey(change(), of: store) == IdempotencyKey(change(), of: store))
    #expect(IdempotencyKey(change(), of: [1]).hash != IdempotencyKey(change(), of: store).hash)
  }

  @Test(
    "texts that are no keys are somebody else's",
    arguments: [
      "", "web-3", "00000000000c-8000-8000-8000-000000000000",
      "00000000-000c-4abc-8000-000000000000", "00000000-000c-8abc-c000-000000000000",
      "00000000-000c-8abc-8000-00000000000g", "00000000-000c-8abc-8000-0000000000\u{10}0",
      "00000000-000c-8abc-8000-0000000000é", String(repeating: "a", count: 10_000),
    ])
  func foreign(text: String) {
    #expect(IdempotencyKey(text) == nil)
  }
}

/// Devices that were copied or restored from a backup. Steps are words: `put A key text`,
/// `delete A key`, `sync A`, `lose A`, which never hears the answer to a push, `backup A`,
/// `restore A`, `copy A B`, `web key text`.
@Suite("A back end that copied and restored stores come back to")
struct RestoredDeviceTests {
  static let scripts = [
    "put A a 1, sync A, backup A, put A a 2, sync A, restore A, put A b 1, sync A",
    "put A a 1, sync A, backup A, delete A a, sync A, restore A, put A b 1, sync A",
    "put A a 1, sync A, copy A B, put A a 2, put B b 1, sync A, sync B, put B b 2, sync B",
    "put A a 1, lose A, copy A B, put B a 2, sync B, put A c 1, sync A",
    "put A a 1, sync A, backup A, put A b 1, put A c 1, sync A, restore A, put A d 1, put A e 1,"
      + " lose A, put A d 2, sync A, restore A, put A f 1, sync A",
    "web a 1, sync A, backup A, put A a 2, sync A, web a 3, restore A, put A b 1, sync A",
    "put A a 1, sync A, copy A B, delete A a, put B b 1, sync A, sync B, put B a 2, sync B",
    "put A a 1, sync A, put A a 2, sync A, web a 9, sync A, copy A B, put B c 1, sync B, sync A",
  ]

  @Test(
    "nothing is lost and nothing is there twice", arguments: scripts,
    RestoredWorld.Kind.allCases)
  func holds(script: String, kind: RestoredWorld.Kind) async throws {
    // One that forgets what it was asked does again what is sent again.
    guard kind != .forgetful || !script.contains("lose") else { return }
    let world = try RestoredWorld(kind)
    for step in script.split(separator: ",") { try await world.apply(String(step)) }
    for _ in 0..<3 {
      for name in world.devices.keys.sorted() { try await world.apply("sync \(name)") }
    }
    let there = world.there
    #expect(there.sorted() == Array(world.wanted.values).sorted(), "\(script)")
    for (name, device) in world.devices {
      #expect(try world.texts(device).sorted() == there.sorted(), "\(name) in \(script)")
      #expect(device.session.totals.parked == 0)
    }
  }

  @Test(
    "a create of before the backup, which was undone since, ends the same for all",
    arguments: RestoredWorld.Kind.allCases)
  func undone(kind: RestoredWorld.Kind) async throws {
    let world = try RestoredWorld(kind)
    for step in [
      "put A a 1", "backup A", "sync A", "delete A a", "sync A", "restore A", "put A b 2", "sync A",
      "sync C",
    ] {
      try await world.apply(step)
    }
    // A list of every version tells that it was there and is gone; else the edit survives.
    #expect(world.there.sorted() == (kind == .log ? ["2"] : ["1", "2"]))
    for device in world.devices.values {
      #expect(try world.texts(device).sorted() == world.there.sorted())
    }
  }
}
