import Testing
import Tidemark
import TidemarkEngine
import TidemarkREST
import TidemarkSync
import TidemarkTestKit

/// A wallet: cards and the entries on them, which a back end numbers. An entry names its card by
/// the id that the back end has given that.
///
/// Steps are words: `card A visa`, `entry A visa 5`, `edit A visa gold`, `sync A`, `lose A`, which
/// syncs and never hears the first answer, `backup A`, `restore A`, `copy A B`. An hour
/// passes before each.
@Suite("A wallet whose devices are restored and copied")
struct WalletTests {
  private final class Device {
    let store: Store
    let disk: SimulatedFileSystem
    /// The texts that it has given its keys.
    var texts: [String: String]

    init(_ disk: SimulatedFileSystem, _ texts: [String: String], random: UInt64) throws {
      self.disk = disk
      self.texts = texts
      let configuration = Store.Configuration().simulated(
        on: disk, random: SeededRandom(seed: random))
      store = try Store.openBlocking(at: "/wallet", configuration: configuration)
    }
  }

  private final class Wallet {
    let back = NumberingBackEnd()
    var devices: [String: Device] = [:]
    var backups: [String: (disk: DiskSnapshot, texts: [String: String])] = [:]
    /// The texts of keys that have been with the back end, the last of each.
    var synced: [String: String] = [:]
    let clock = ManualClock()
    let losesAnswers = Lock(false)
    var random: UInt64 = 0

    func open(_ disk: SimulatedFileSystem, _ texts: [String: String]) throws -> Device {
      random += 1
      return try Device(disk, texts, random: random)
    }

    func device(_ name: String) throws -> Device {
      if let device = devices[name] { return device }
      let device = try open(SimulatedFileSystem(seed: UInt64(devices.count)), [:])
      devices[name] = device
      return device
    }

    func put(_ device: Device, _ key: String, _ text: String, after card: String? = nil)
      async throws
    {
      var options = PutOptions()
      if let card, let entry = try device.store.entry(forKey: card) {
        options.after = [entry.sequence]
      }
      try await device.store.put(key, text, options: options, durability: .durable)
      device.texts[key] = text
    }

    /// The closures name a card by its id, which the store knows by then.
    func peer(_ store: Store) -> RequestPeer {
      RequestPeer(
        named: "https://api.example.org", options: RequestPeer.Options(changesPerBatch: 4),
        clock: clock,
        send: { [back, losesAnswers] change in
          var change = change
          let words = String(decoding: change.content.value, as: UTF8.self).split(separator: " ")
          if words.first == "entry" {
            let card = try await store.alias(forKey: String(words[1]), at: "wallet")
            guard let card else {
              return .rejected(SyncRejection(code: "card", message: "\(words[1]) has no id"))
            }
            change.content = SyncContent(value: Array("entry \(card) \(words[2])".utf8))
          }
          let outcome = try back.send(change)
          if losesAnswers.withLock({ $0 }) { throw PeerError(.unavailable, "no answer") }
          return outcome
        }, fetch: { [back] in back.fetch($0) }, read: nil, newKey: { id, _ in "there/\(id)" })
    }

    func sync(_ device: Device) async throws {
      let replicator = try device.store.replicator(named: "wallet", peer: peer(device.store))
      _ = try await replicator.syncOnce()
    }

    func apply(_ step: String) async throws {
      let words = step.split(separator: " ").map { String($0) }
      let device = try device(words[1])
      clock.advance(by: .seconds(3600))
      switch words[0] {
      case "card": try await put(device, "card/\(words[2])", "card \(words[2])")
      case "edit": try await put(device, "card/\(words[2])", "card \(words[3])")
      case "entry":
        let card = "card/\(words[2])"
        try await put(
          device, "entry/\(words[1])\(words[3])", "entry \(card) \(words[3])", after: card)
      case "sync":
        try await sync(device)
        synced.merge(device.texts) { $1 }
      case "lose":
        losesAnswers.withLock { $0 = true }
        _ = try? await sync(device)
        losesAnswers.withLock { $0 = false }
      case "backup": backups[words[1]] = (device.disk.snapshot(), device.texts)
      case "restore":
        guard let backup = backups[words[1]] else { return }
        device.disk.kill()
        random += 1
        devices[words[1]] = try open(
          SimulatedFileSystem(killedAt: backup.disk, seed: random), backup.texts)
      default:
        random += 1
        let copy = SimulatedFileSystem(killedAt: device.disk.snapshot(), seed: random)
        devices[words[2]] = try open(copy, device.texts)
      }
    }

    /// The texts with those of cards in the place of their names.
    static func resolved(_ texts: [String], _ card: (String) async throws -> String?) async throws
      -> [String]
    {
      var found: [String] = []
      for text in texts {
        let words = text.split(separator: " ").map { String($0) }
        let name = words[0] == "entry" ? try await card(words[1]) ?? "?" : ""
        found.append(words[0] == "entry" ? "\(words[2]) on \(name)" : text)
      }
      return found.sorted()
    }

    /// The texts of a device, which calls some cards by its keys and others by their ids.
    func texts(_ device: Device) async throws -> [String] {
      var texts: [String] = []
      var keys = try device.store.keys()
      while let key = try keys.next() {
        texts.append(try device.store.text(forKey: key) ?? "")
      }
      return try await Self.resolved(texts) { name in
        if name.contains("/") { return try device.store.text(forKey: name) }
        let key = try await device.store.key(forAlias: KeyAlias(name), at: "wallet")
        return try key.flatMap { try device.store.text(forKey: $0) }
      }
    }
  }

  static let scripts = [
    "card A visa, entry A visa 5, sync A, backup A, entry A visa 7, sync A, restore A, "
      + "entry A visa 9, sync A",
    "card A visa, backup A, sync A, entry A visa 2, sync A, restore A, entry A visa 3, sync A",
    "card A visa, sync A, backup A, entry A visa 2, sync A, restore A, sync A, entry A visa 3, "
      + "sync A, restore A, entry A visa 4, lose A, sync A",
    "card A visa, entry A visa 1, sync A, copy A B, entry A visa 2, entry B visa 3, sync B, "
      + "sync A, entry B visa 4, sync B",
    "card A visa, card A gold, sync A, copy A B, card A red, card B blue, sync A, sync B, "
      + "edit B blue azure, edit A red ruby, sync B, sync A",
    "card A visa, lose A, copy A B, sync B, entry B visa 2, sync A, sync B",
    "card A visa, backup A, entry A visa 1, sync A, restore A, copy A B, entry A visa 2, "
      + "entry B visa 3, sync A, sync B",
    "card A visa, sync A, entry A visa 1, lose A, backup A, sync A, restore A, entry A visa 2, "
      + "lose A, copy A B, entry B visa 3, sync A, sync B, card C amex, entry C amex 4, sync C",
  ]

  @Test(
    "every card and entry is there once, at the back end and on all devices",
    arguments: scripts, [true, false])
  func holds(script: String, tellsKeys: Bool) async throws {
    let wallet = Wallet()
    wallet.back.state.withLock { $0.tellsKeys = tellsKeys }
    for step in script.split(separator: ",") {
      try await wallet.apply(step.trimmingPrefix(" ").description)
    }
    for _ in 0..<3 {
      for name in wallet.devices.keys.sorted() { try await wallet.apply("sync \(name)") }
    }
    let there = wallet.back.texts
    let found = try await Wallet.resolved(Array(there.values)) { Int($0).flatMap { there[$0] } }
    let wanted = try await Wallet.resolved(Array(wallet.synced.values)) { wallet.synced[$0] }
    #expect(found == wanted)
    for (name, device) in wallet.devices {
      #expect(try await wallet.texts(device) == wanted, "device \(name)")
    }
  }
}
