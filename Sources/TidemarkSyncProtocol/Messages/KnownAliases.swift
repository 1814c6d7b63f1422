public import Tidemark
internal import TidemarkEngine

/// The remote end's names for the keys of a store: each key has one alias at most, and each alias
/// belongs to one key. Peers whose remote ends have ids of their own look here, and those whose
/// remote ends do not tell whose changes they give.
///
/// It is made of the aliases' records in the store's log when somebody first asks, and is then in
/// memory as a whole: some 300 bytes for each key that has an alias.
public final class KnownAliases: Sendable {
  private struct State {
    var keys: [Alias: [UInt8]] = [:]
    var aliases: [[UInt8]: Alias] = [:]
  }

  private let state = Lock(State())

  private let own: @Sendable (UInt64) -> PushedChange?

  /// The id of the store, which its copies have as well; empty where nobody knows.
  package let store: [UInt8]

  /// - Parameter own: gives an own change, as ``change(ofOwn:)`` does.
  package init(
    store: [UInt8] = [], own: @escaping @Sendable (UInt64) -> PushedChange? = { _ in nil }
  ) {
    self.store = store
    self.own = own
  }

  /// The remote end's name for a key; nil for one that it has given no id.
  public func alias(ofKey key: some BytesConvertible) -> Alias? { alias(ofKey: Key(key).bytes) }

  package func alias(ofKey key: [UInt8]) -> Alias? { state.withLock { $0.aliases[key] } }

  /// The key that the remote end calls so; nil for none.
  public func key(ofAlias alias: Alias) -> Key? {
    state.withLock { $0.keys[alias] }.map { Key($0) }
  }

  /// A change of the store's own, as it is sent; nil for one that is not in its log, and for one
  /// whose key has been given something else by the remote end since.
  public func change(ofOwn sequence: UInt64) -> PushedChange? { own(sequence) }

  /// How many keys have an alias.
  public var count: Int { state.withLock { $0.keys.count } }

  /// All aliases, in no order.
  package var all: [Alias] { state.withLock { Array($0.keys.keys) } }

  /// Takes over what is in the log now.
  package func apply(_ changes: AliasChanges) {
    guard !changes.isEmpty else { return }
    state.withLock { state in
      for (alias, key) in changes.keys { state.keys[alias] = key }
      for (key, alias) in changes.aliases { state.aliases[key] = alias }
    }
  }
}

extension KnownAliases: Hashable {
  /// Whether both are the same object.
  public static func == (a: KnownAliases, b: KnownAliases) -> Bool { a === b }
  /// Hashes the object's identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// Aliases that a commit gives and takes away.
package struct AliasChanges {
  private let known: KnownAliases
  /// Nil for what goes. Both speak of the same pairs.
  package private(set) var keys: [Alias: [UInt8]?] = [:]
  package private(set) var aliases: [[UInt8]: Alias?] = [:]

  package init(upon known: KnownAliases) { self.known = known }

  package var isEmpty: Bool { keys.isEmpty }

  package func alias(ofKey key: [UInt8]) -> Alias? {
    if let changed = aliases[key] { return changed }
    return known.alias(ofKey: key)
  }

  package func key(ofAlias alias: Alias) -> [UInt8]? {
    if let changed = keys[alias] { return changed }
    return known.key(ofAlias: alias)?.bytes
  }

  /// Gives a key an alias, in the place of the one that it had. Nobody else's may be taken.
  package mutating func set(_ alias: Alias, ofKey key: [UInt8]) {
    guard self.alias(ofKey: key) != alias else { return }
    remove(ofKey: key)
    keys[alias] = .some(key)
    aliases[key] = .some(alias)
  }

  /// Takes a key's alias away.
  package mutating func remove(ofKey key: [UInt8]) {
    guard let alias = alias(ofKey: key) else { return }
    keys[alias] = .some(nil)
    aliases[key] = .some(nil)
  }
}
