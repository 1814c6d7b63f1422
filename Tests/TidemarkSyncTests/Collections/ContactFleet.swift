import Tidemark
import TidemarkSyncTestKit
import TidemarkTestKit

@testable import TidemarkSync

/// Devices with programs of several versions that share their contacts by a server.
///
/// Each field of each contact has one device that edits it, so that no two edits of a field meet
/// and every edit must survive. All devices write all contacts.
final class ContactFleet {
  final class Device {
    let name: String
    let disk = MemoryFileSystem()
    var version: Int
    var store: Store
    var program: any ContactProgram
    var replicator: Replicator

    init(_ name: String, _ version: Int, _ peer: MemoryPeer) throws {
      (self.name, self.version) = (name, version)
      store = try Self.opened(disk)
      program = try store.contactProgram(version)
      replicator = try store.replicator(named: "server", peer: peer, resolver: .mergeFields())
    }

    private static func opened(_ disk: MemoryFileSystem) throws -> Store {
      try Store.openBlocking(
        at: "store",
        configuration: Store.Configuration(
          environment: Store.Environment(fileSystem: disk), usesThreads: false))
    }

    func upgrade(to version: Int, _ peer: MemoryPeer) async throws {
      self.version = version
      try await store.close()
      store = try Self.opened(disk)
      program = try store.contactProgram(version)
      replicator = try store.replicator(named: "server", peer: peer, resolver: .mergeFields())
    }
  }

  /// The facts about a contact that every device must have in the end.
  struct Expected {
    var values: [ContactField: String]
    /// The versions that have created it and written its name.
    var created: Int
    var namedBy: Set<Int>
  }

  let peer: MemoryPeer
  let devices: [Device]
  private(set) var expected: [String: Expected] = [:]
  /// How many edits of two devices were merged, and how many contacts an older program could not
  /// read: a run without any has shown little.
  private(set) var merged = 0
  private(set) var unread = 0
  private var random: SeededGenerator
  private var counter = 0
  /// In half of the runs one device stays old, so that every version meets the first ones.
  private let newestOfFirst: Int

  init(seed: UInt64) throws {
    random = SeededGenerator(seed: seed)
    peer = try MemoryPeer(seed: seed)
    let middle = Int.random(in: 1...3, using: &random)
    let versions = [1, middle, Int.random(in: 2...6, using: &random)]
    newestOfFirst = Bool.random(using: &random) ? 2 : 6
    var devices: [Device] = []
    for (name, version) in zip(["a", "b", "c"], versions) {
      devices.append(try Device(name, version, peer))
    }
    self.devices = devices
  }

  func run(steps: Int) async throws {
    for _ in 0..<steps {
      let device = devices[Int.random(in: 0..<devices.count, using: &random)]
      switch Int.random(in: 0..<100, using: &random) {
      case 0..<10: try await create(on: device)
      case 10..<75: try await edit(on: device)
      case 75..<95: try await sync(device)
      default:
        let newest = device === devices[0] ? newestOfFirst : 6
        guard device.version < newest else { continue }
        try await device.upgrade(
          to: Int.random(in: device.version + 1...newest, using: &random), peer)
      }
    }
  }

  func syncAll() async throws {
    for _ in 0..<3 { for device in devices { try await sync(device) } }
  }

  private func sync(_ device: Device) async throws {
    merged += try await device.replicator.syncOnce().merged
  }

  func upgradeAll() async throws {
    for device in devices.shuffled(using: &random) where device.version < 6 {
      try await device.upgrade(to: 6, peer)
    }
  }

  func close() async throws {
    for device in devices { try await device.store.close() }
    await peer.close()
  }

  // MARK: Writes

  private func value(_ field: ContactField, _ version: Int) -> String {
    counter += 1
    switch field {
    case .name:
      let middle = Bool.random(using: &random) ? " Maria" : ""
      return "Ana\(counter)\(middle) Lopez\(counter)"
    case .isFavourite: return Bool.random(using: &random) ? "true" : "false"
    case .group:
      let groups = ["friend", "family"] + (version >= 5 ? ["work", "club \(counter)"] : [])
      return groups.randomElement(using: &random) ?? "friend"
    case .email: return "\(counter)@example.org"
    case .stars: return "\(Int.random(in: 0...5, using: &random))"
    }
  }

  private func create(on device: Device) async throws {
    counter += 1
    let id = "\(device.name)\(counter)"
    var values: [ContactField: String] = [:]
    for field in ContactField.allCases where device.program.fields.contains(field) {
      values[field] = value(field, device.version)
    }
    try await device.program.create(id, values)
    expected[id] = Expected(
      values: values, created: device.version, namedBy: [device.version])
  }

  /// Edits a field that is this device's.
  private func edit(on device: Device) async throws {
    let choices = expected.keys.sorted().flatMap { id in
      ContactField.allCases.map { (id: id, field: $0) }
    }.filter { id, field in
      // A default that one device writes and a value that another one chooses are a conflict.
      device.program.fields.contains(field) && editor(of: field, id) === device
        && (expected[id]?.values[field] != nil || field == .email)
    }
    guard let (id, field) = choices.randomElement(using: &random) else { return }
    let value = value(field, device.version)
    guard try await device.program.set(field, of: id, to: value) else { return }
    expected[id]?.values[field] = value
    if field == .name { expected[id]?.namedBy.insert(device.version) }
  }

  private func editor(of field: ContactField, _ id: String) -> Device {
    let number = id.utf8.reduce(0) { $0 + Int($1) }
    let fields = ContactField.allCases
    return devices[(number + (fields.firstIndex(of: field) ?? 0)) % devices.count]
  }

  // MARK: Checks

  /// What a device has lost or shows wrongly; nil for nothing.
  func loss(on device: Device) throws -> String? {
    let shown = try device.program.shown()
    var unreadable: Set<String> = []
    for (id, contact) in expected {
      guard let text = try device.store.text(forKey: "contacts/\(id)") else {
        return "contact \(id) is gone"
      }
      for (field, value) in contact.values where !Self.holds(text, field, value) {
        return "\(field) of \(id) is not \(value) in \(text)"
      }
      if !Self.isReadable(text, by: device.version) {
        unreadable.insert(id)
        continue
      }
      guard let values = shown.values[id] else { return "contact \(id) is not shown: \(text)" }
      for field in device.program.fields {
        let wanted = contact.values[field] ?? Self.defaults[field]
        guard values[field] == wanted else {
          return "\(field) of \(id) shows as \(values[field] ?? "nothing") in \(text)"
        }
      }
      guard device.version == 6, let parts = shown.names[id], let name = values[.name] else {
        continue
      }
      guard parts.joined(separator: " ") == name else { return "\(parts) of \(id) is not \(name)" }
      // A split that only the newest program can say stays where only that one has written names.
      if contact.namedBy == [6], parts.last != name.split(separator: " ").last.map(String.init) {
        return "\(parts) of \(id) was split anew"
      }
    }
    unread += unreadable.count
    guard shown.unreadable == unreadable else {
      return "unreadable are \(shown.unreadable.sorted()), not \(unreadable.sorted())"
    }
    return try device.program.wrongAnswer()
  }

  private static let defaults: [ContactField: String] = [
    .isFavourite: "false", .email: "", .stars: "0",
  ]

  private static func holds(_ text: String, _ field: ContactField, _ value: String) -> Bool {
    let isBare = field == .stars || field == .isFavourite
    return text.contains("\"\(field.rawValue)\":\(isBare ? value : "\"\(value)\"")")
  }

  /// Whether a program can read a contact, as the article says.
  private static func isReadable(_ text: String, by version: Int) -> Bool {
    if version == 1, !text.contains("\"isFavourite\":") { return false }
    if version >= 3 { return true }
    return text.contains("\"group\":\"friend\"") || text.contains("\"group\":\"family\"")
  }
}
