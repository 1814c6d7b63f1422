import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkREST
@testable import TidemarkSync
@testable import TidemarkSyncProtocol

/// Devices that are copied, and restored from backups, before one back end.
final class RestoredWorld {
  enum Kind: CaseIterable {
    /// A list of what keys hold, with idempotency keys.
    case state
    /// A list of every version.
    case log
    /// A list of every version that does not tell idempotency keys.
    case silent
    /// Ids of the back end's own.
    case numbering
    /// A list of what keys hold, of a back end that does everything that it is asked.
    case forgetful
  }

  private let kind: Kind
  private let back = BackEnd()
  private let numbers = NumberingBackEnd()
  private(set) var devices: [String: RestDevice] = [:]
  private var pending: [String: [String: String]] = [:]
  private var backups: [String: (disk: DiskSnapshot, pending: [String: String])] = [:]
  /// The texts that keys are to hold.
  private(set) var wanted: [String: String] = [:]
  private var seed: UInt64 = 0

  init(_ kind: Kind) throws {
    self.kind = kind
    back.state.withLock {
      $0.listsVersions = kind == .log || kind == .silent
      $0.tellsKeys = kind != .silent
      $0.keepsKeys = kind != .forgetful
    }
  }

  private func device(_ name: String, _ disk: DiskSnapshot? = nil) throws -> RestDevice {
    if disk == nil, let device = devices[name] { return device }
    seed += 1
    let (back, numbers, kind) = (back, numbers, kind)
    let device = try RestDevice(seed: seed, disk: disk) {
      kind == .numbering
        ? numbers.peer()
        : RequestPeer(
          named: "https://api.example.org", send: { try back.send($0) }, fetch: { back.fetch($0) })
    }
    devices[name] = device
    return device
  }

  private var requests: Int {
    kind == .numbering ? numbers.requests.count : back.state.withLock { $0.requests.count }
  }

  func apply(_ step: String) async throws {
    let words = step.split(separator: " ").map { String($0) }
    if words[0] == "web" {
      guard kind != .numbering else { return }
      back.put(words[1], words[2])
      wanted[words[1]] = words[2]
      return
    }
    let device = try device(words[1])
    switch words[0] {
    case "put":
      try device.put(words[2], words[3])
      pending[words[1], default: [:]][words[2]] = words[3]
    case "delete":
      try device.delete(words[2])
      pending[words[1], default: [:]][words[2]] = ""
    case "sync", "lose":
      if words[0] == "lose" {
        let before = requests
        while requests == before { _ = try await device.step(toPush: true) }
      } else {
        try await device.settle()
      }
      wanted.merge(pending[words[1]] ?? [:]) { $1 }
      wanted = wanted.filter { !$0.value.isEmpty }
      pending[words[1]] = [:]
    case "backup": backups[words[1]] = (device.snapshot(), pending[words[1]] ?? [:])
    case "restore":
      guard let backup = backups[words[1]] else { return }
      _ = try self.device(words[1], backup.disk)
      pending[words[1]] = backup.pending
    default:
      _ = try self.device(words[2], device.snapshot())
      pending[words[2]] = pending[words[1]] ?? [:]
    }
  }

  /// The texts at the back end.
  var there: [String] {
    if kind == .numbering { return Array(numbers.texts.values) }
    return back.state.withLock(\.items).values.compactMap { state in
      if case .value(let content, _) = state {
        String(decoding: content.value, as: UTF8.self)
      } else {
        nil
      }
    }
  }

  /// The texts of a device.
  func texts(_ device: RestDevice) throws -> [String] {
    let keys = ["a", "b", "c", "d", "e", "f"] + (1...20).map { "note/\($0)" }
    return try keys.compactMap { try device.get($0) }
  }
}
