public import Tidemark
internal import TidemarkEngine

/// Aliases: the ids that a back end gives to records created from a store's keys. Each key has at
/// most one alias, and each alias one key. A peer of such a back end uses them to address records
/// and to find the keys of pulled changes; and ``change(ofOwn:)`` to recognise the store's own.
///
/// They are read from the store's log at first use, and kept in memory: about 300 bytes for each
/// key that has an alias.
public final class KnownAliases: Sendable {
  private struct State {
    var keys: [KeyAlias: [UInt8]] = [:]
    var aliases: [[UInt8]: KeyAlias] = [:]
  }

  private let state = Lock(State())

  private let own: @Sendable (UInt64) -> PushedChange?

  /// The id of the store, which its copies have as well; empty where it is not known.
  package let store: [UInt8]

  /// - Parameter own: implements ``change(ofOwn:)``.
  package init(
    store: [UInt8] = [], own: @escaping @Sendable (UInt64) -> PushedChange? = { _ in nil }
  ) {
    self.store = store
    self.own = own
  }

  /// Returns the alias of a key; nil if the back end has given none.
  public func alias(ofKey key: some BytesConvertible) -> KeyAlias? { alias(ofKey: Key(key).bytes) }

  package func alias(ofKey key: [UInt8]) -> KeyAlias? { state.withLock { $0.aliases[key] } }

  /// Returns the key that has an alias; nil if no key has it.
  public func key(ofAlias alias: KeyAlias) -> Key? {
    state.withLock { $0.keys[alias] }.map { Key($0) }
  }

  /// Returns a change of this store by its sequence, as the replicator pushes it. Nil if the log
  /// does not have it, or the back end has since given its key other content.
  public func change(ofOwn sequence: UInt64) -> PushedChange? { own(sequence) }

  /// How many keys have an alias.
  public var count: Int { state.withLock { $0.keys.count } }

  /// All aliases, in no order.
  package var all: [KeyAlias] { state.withLock { Array($0.keys.keys) } }

  /// Applies changes that are committed.
  package func apply(_ changes: AliasChanges) {
    guard !changes.isEmpty else { return }
    state.withLock { state in
      for (alias, key) in changes.keys { state.keys[alias] = key }
      for (key, alias) in changes.aliases { state.aliases[key] = alias }
    }
  }
}

extension KnownAliases: Hashable {
  /// Compares identities: true only if both are the same object.
  public static func == (a: KnownAliases, b: KnownAliases) -> Bool { a === b }
  /// Hashes the identity of the object, not its aliases.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// Aliases that a commit sets and removes, on top of those that are known.
package struct AliasChanges {
  private let known: KnownAliases
  /// Nil for what is removed. Both have the same pairs.
  package private(set) var keys: [KeyAlias: [UInt8]?] = [:]
  package private(set) var aliases: [[UInt8]: KeyAlias?] = [:]

  package init(upon known: KnownAliases) { self.known = known }

  package var isEmpty: Bool { keys.isEmpty }

  package func alias(ofKey key: [UInt8]) -> KeyAlias? {
    if let changed = aliases[key] { return changed }
    return known.alias(ofKey: key)
  }

  package func key(ofAlias alias: KeyAlias) -> [UInt8]? {
    if let changed = keys[alias] { return changed }
    return known.key(ofAlias: alias)?.bytes
  }

  /// Sets a key's alias, in place of the one that it had. It must not be that of another key.
  package mutating func set(_ alias: KeyAlias, ofKey key: [UInt8]) {
    guard self.alias(ofKey: key) != alias else { return }
    remove(ofKey: key)
    keys[alias] = .some(key)
    aliases[key] = .some(alias)
  }

  /// Removes a key's alias.
  package mutating func remove(ofKey key: [UInt8]) {
    guard let alias = alias(ofKey: key) else { return }
    keys[alias] = .some(nil)
    aliases[key] = .some(nil)
  }
}
