import Foundation
import Testing
import Tidemark
import TidemarkSyncTestKit
import TidemarkTestKit

@testable import TidemarkSync

@Suite("Changing a type", .timeLimit(.minutes(20)))
struct ChangingATypeTests {
  // MARK: Many devices

  @discardableResult
  private func check(seed: UInt64) async throws -> (merged: Int, unread: Int) {
    let fleet = try ContactFleet(seed: seed)
    try await fleet.run(steps: 120)
    try await fleet.syncAll()
    for device in fleet.devices {
      let loss = try fleet.loss(on: device)
      #expect(loss == nil, "seed \(seed), version \(device.version)")
    }
    try await fleet.upgradeAll()
    try await fleet.run(steps: 30)
    try await fleet.syncAll()
    for device in fleet.devices {
      let loss = try fleet.loss(on: device)
      #expect(loss == nil, "seed \(seed), at the end")
      #expect(try device.program.shown().unreadable.isEmpty, "seed \(seed)")
    }
    try await fleet.close()
    return (fleet.merged, fleet.unread)
  }

  @Test("devices with six versions of a type lose no object and no field", arguments: 1...40)
  func fleet(seed: UInt64) async throws { try await check(seed: seed) }

  @Test("devices with six versions of a type lose nothing in runs of a random seed")
  func random() async throws {
    var total: (merged: Int, unread: Int) = (0, 0)
    for _ in 0..<10 {
      let seed = UInt64.random(in: 0 ... .max)
      print("seed \(seed)")
      let found = try await check(seed: seed)
      total = (total.merged + found.merged, total.unread + found.unread)
    }
    print("merged \(total.merged), not readable by older programs \(total.unread)")
    #expect(total.merged > 0 && total.unread > 0)
  }

  /// Two devices that share a server.
  private func pair() throws -> (Store, Replicator, Store, Replicator) {
    let peer = try MemoryPeer()
    let (old, new) = (try memoryStore(usesThreads: false), try memoryStore(usesThreads: false))
    return (
      old, try old.replicator(named: "server", peer: peer, resolver: .mergeFields()),
      new, try new.replicator(named: "server", peer: peer, resolver: .mergeFields())
    )
  }

  @Test("the check of the fleet finds a program that drops the fields that it does not know")
  func planted() async throws {
    var isFound = false
    for seed in UInt64(1)...20 where !isFound {
      let fleet = try ContactFleet(seed: seed)
      for device in fleet.devices where device.version == 1 {
        device.program = try ContactProgramOf(dropping: 1, device.store, Contact1.schema)
      }
      try await fleet.run(steps: 120)
      try await fleet.syncAll()
      isFound = try fleet.devices.contains { try fleet.loss(on: $0) != nil }
      try await fleet.close()
    }
    #expect(isFound)
  }

  // MARK: What older programs do

  @Test("an older program reports an object that it cannot read, and a put there replaces it")
  func unreadable() async throws {
    let (old, oldSync, new, newSync) = try pair()
    let olds = try old.collection(Contact1.Contact.self, named: "contacts", Contact1.schema)
    let news = try new.collection(Contact6.Contact.self, named: "contacts", Contact6.schema)
    var ada = Contact6.Contact(id: "1", first: "Ada", last: "Lovelace", group: .work)
    ada.stars = 5
    try await news.put(ada)
    _ = try await newSync.syncOnce()
    _ = try await oldSync.syncOnce()
    var told: [TidemarkError] = []
    #expect(try olds.all(unreadable: { told.append($0) }).isEmpty)
    #expect(told.map { $0.object?.id } == ["1"])
    await #expect(throws: TidemarkError.self) { try await olds.update("1") { $0.name = "A B" } }
    try await olds.put(.init(id: "1", name: "Ada King", isFavourite: true, group: .family))
    _ = try await oldSync.syncOnce()
    _ = try await newSync.syncOnce()
    let read = try #require(try news.get("1"))
    #expect([read.first, read.last] == ["Ada", "King"] && read.stars == 0)
    try await old.close()
    try await new.close()
  }

  @Test("an older program that replaces an unreadable object of a newer version is read by upcasts")
  func replaced() async throws {
    let store = try memoryStore(usesThreads: false)
    let olds = try store.collection(Contact1.Contact.self, named: "contacts")
    var schema = CollectionSchema<Renamed>(version: 1, upcasts: [Self.rename])
    schema.defaults = ["isFavourite": false]
    let news = try store.collection(Renamed.self, named: "contacts", schema)
    try await news.put(Renamed(id: "1", fullName: "Ada Lovelace"))
    try await olds.put(.init(id: "1", name: "Ada King", isFavourite: true, group: .family))
    #expect(try news.get("1")?.fullName == "Ada King")
    try await store.close()
  }

  struct Renamed: Codable, Identifiable, Equatable, Sendable {
    var id: String
    var fullName: String
  }

  /// The upcast of the article: it does nothing to an object that has the new form.
  private static let rename = Upcast(from: 0) { contact in
    guard let name = contact["name"] else { return }
    contact["fullName"] = name
    contact["name"] = nil
  }

  /// The name that an object has on the device where it was written, and on another one.
  private func renamed(_ upcast: Upcast) async throws -> [String?] {
    let (one, oneSync, two, twoSync) = try pair()
    let schema = CollectionSchema<Renamed>(version: 1, upcasts: [upcast])
    let ones = try one.collection(Renamed.self, named: "contacts", schema)
    let twos = try two.collection(Renamed.self, named: "contacts", schema)
    try await ones.put(Renamed(id: "1", fullName: "Ada"))
    _ = try await oneSync.syncOnce()
    _ = try await twoSync.syncOnce()
    let names = [try ones.get("1")?.fullName, try? twos.get("1")?.fullName]
    try await one.close()
    try await two.close()
    return names
  }

  @Test("an upcast that looks at the fields first is safe for objects of other devices")
  func guarded() async throws {
    #expect(try await renamed(Self.rename) == ["Ada", "Ada"])
  }

  @Test("an upcast relies on the version alone for objects of other devices")
  func unguarded() async throws {
    await withKnownIssue("replication does not carry the version of an object") {
      let upcast = Upcast(from: 0) { contact in
        contact["fullName"] = contact["name"]
        contact["name"] = nil
      }
      let names = try? await renamed(upcast)
      #expect(names == ["Ada", "Ada"])
    }
  }

  @Test("a default that an edit writes can win over a value that another device chose meanwhile")
  func defaults() async throws {
    let (old, oldSync, new, newSync) = try pair()
    let olds = try old.collection(Contact1.Contact.self, named: "contacts", Contact1.schema)
    try await olds.put(.init(id: "1", name: "Ada Lovelace", isFavourite: true, group: .family))
    _ = try await oldSync.syncOnce()
    _ = try await newSync.syncOnce()
    let ones = try old.collection(Contact2.Contact.self, named: "contacts", Contact2.schema)
    let twos = try new.collection(Contact2.Contact.self, named: "contacts", Contact2.schema)
    try await ones.update("1") { $0.stars = 5 }
    try await twos.update("1") { $0.email = "ada@example.org" }
    _ = try await oldSync.syncOnce()
    _ = try await newSync.syncOnce()
    _ = try await oldSync.syncOnce()
    #expect(try [ones.get("1"), twos.get("1")].map { $0?.stars } == [0, 0])
    #expect(try ones.get("1")?.email == "ada@example.org")
    try await old.close()
    try await new.close()
  }

  @Test("an import on one device leaves no mark on another one")
  func imports() async throws {
    let (one, oneSync, two, twoSync) = try pair()
    let ran = try await one.importOnce(named: "old") { importer in
      try await importer.write { try $0.put("a", "1") }
    }
    _ = try await oneSync.syncOnce()
    _ = try await twoSync.syncOnce()
    #expect(try two.text(forKey: "a") == "1")
    #expect(try await two.importOnce(named: "old") { _ in })
    #expect(ran)
    #expect(try await !one.importOnce(named: "old") { _ in })
    try await one.close()
    try await two.close()
  }

  // MARK: The article

  struct OldTask: Codable, Identifiable, Sendable {
    var id: String
    var title: String
  }

  struct NewTask: Codable, Identifiable, Equatable, Sendable {
    var id: String
    var title: String
    var stars = 0
  }

  @Test("the test that the article shows passes")
  func anOlderProgramKeepsStars() async throws {
    let server = try MemoryPeer()
    let oldStore = try await Store.open(at: .inMemory)
    let newStore = try await Store.open(at: .inMemory)
    let oldSync = try oldStore.replicator(named: "server", peer: server)
    let newSync = try newStore.replicator(named: "server", peer: server)
    let old = try oldStore.collection(OldTask.self, named: "tasks")
    let new = try newStore.collection(
      NewTask.self, named: "tasks", CollectionSchema<NewTask>(defaults: ["stars": 0]))

    try await new.put(NewTask(id: "1", title: "Buy milk", stars: 5))
    _ = try await newSync.syncOnce()
    _ = try await oldSync.syncOnce()
    try await old.update("1") { $0.title = "Buy bread" }
    _ = try await oldSync.syncOnce()
    _ = try await newSync.syncOnce()
    #expect(try new.get("1") == NewTask(id: "1", title: "Buy bread", stars: 5))
  }

  @Test("the declarations of the article are those that the devices run")
  func article() throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent()
    let root = folder.deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let path = "Sources/Tidemark/Tidemark.docc/ChangingAType.md"
    let article = try String(contentsOf: root.appending(path: path), encoding: .utf8)
    let shown = Self.lines(article)
    let source = try String(
      contentsOf: folder.appending(path: "ContactVersions.swift"), encoding: .utf8)
    let declarations = Self.declarations(in: source)
    #expect(declarations.count == 8)
    for lines in declarations {
      let isShown = shown.indices.contains { shown[$0...].starts(with: lines) }
      #expect(isShown, "\(lines.joined(separator: "\n"))")
    }
  }

  /// The types and the upcast within the enums of a file.
  private static func declarations(in source: String) -> [[String]] {
    var found: [[String]] = []
    var isOpen = false
    for line in source.split(separator: "\n") {
      if line.hasPrefix("  nonisolated ") || line.hasPrefix("  static let splitName") {
        found.append([])
        isOpen = true
      }
      if isOpen { found[found.count - 1] += lines(String(line)) }
      if line.hasPrefix("  }") || line.hasSuffix("}") && line.hasPrefix("  nonisolated ") {
        isOpen = false
      }
    }
    return found
  }

  /// The lines without their indentation and without `static`, which a local declaration lacks.
  private static func lines(_ text: String) -> [String] {
    text.split(separator: "\n").map { line in
      let words = String(line.drop { $0 == " " })
      return words.hasPrefix("static let splitName") ? String(words.dropFirst(7)) : words
    }
  }
}
