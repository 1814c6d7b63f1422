internal import Tidemark
package import TidemarkEngine
package import TidemarkSyncProtocol

/// The policies of a feed: by key prefix, how conflicts are decided.
package struct PolicyTable: Sendable {
  private static let version: UInt8 = 1
  /// Longest prefix first.
  package private(set) var rows: [CollectionPolicy] = []
  /// The offset of the last change of a policy.
  package private(set) var revision: UInt64 = 0

  package init() {}

  /// Sets a policy by its record; an empty record removes it.
  /// - Throws: `formatTooNew` for a policy that this version does not know.
  package mutating func set(
    _ record: [UInt8], for prefix: [UInt8], at offset: UInt64
  ) throws(TidemarkError) {
    let policy = Self.decode(record)
    guard policy != nil || record.isEmpty else {
      throw TidemarkError(
        .formatTooNew, "a later version has set a policy for conflicts that is not known here")
    }
    set(policy, for: prefix, at: offset)
  }

  /// The policy that counts for a key.
  func policy(for key: [UInt8]) -> ConflictPolicy { rows.policy(for: key) }

  /// The policies for a hello's answer: those of keys that the caller may reach. None if together
  /// they exceed the bounds of a message, which earlier versions did not enforce.
  func rows(within access: SyncAccess) -> [CollectionPolicy] {
    guard (try? rows.check()) != nil else { return [] }
    return rows.filter { access.mayReach(keysWithPrefix: $0.prefix.bytes) }
  }

  /// Sets a policy; nil removes it.
  mutating func set(_ policy: ConflictPolicy?, for prefix: [UInt8], at offset: UInt64) {
    revision = max(revision, offset)
    rows.removeAll { $0.prefix.bytes == prefix }
    guard let policy else { return }
    let place = rows.firstIndex { $0.prefix.bytes.count < prefix.count } ?? rows.count
    rows.insert(CollectionPolicy(prefix: prefix, policy: policy), at: place)
  }

  /// The content of a policy's record: u8 version, u8 policy.
  package static func encode(_ policy: ConflictPolicy?) -> [UInt8] {
    policy.map { [version, $0.rawValue] } ?? []
  }

  /// - Returns: nil for a version or policy that is not known.
  private static func decode(_ value: [UInt8]) -> ConflictPolicy? {
    guard value.count == 2, value[0] == version else { return nil }
    return ConflictPolicy(rawValue: value[1])
  }
}
