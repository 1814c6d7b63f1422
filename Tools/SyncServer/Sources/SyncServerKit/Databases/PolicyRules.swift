internal import Tidemark
internal import TidemarkSyncServer

/// The policies for conflicts that the server's settings give to databases.
///
/// ```
/// notes=lastWriterWins            all keys of one database
/// notes/setting/=lastWriterWins   those that begin with setting/
/// */draft/=detect                 the same in every database
/// ```
struct PolicyRules: Sendable {
  /// Most rules: all of them are read whenever a database is opened.
  static let most = 1000
  /// Longest prefix in bytes.
  static let longestPrefix = 1024

  private struct Row {
    /// Nil for every database.
    let database: DatabaseName?
    let policy: CollectionPolicy
  }

  private var rows: [Row] = []

  /// Reads rules.
  /// - Throws: for an invalid rule, or two rules for the same keys.
  init(_ rules: [String]) throws(SettingsError) {
    guard rules.count <= Self.most else {
      throw SettingsError("there are more than \(Self.most) policies")
    }
    for rule in rules {
      let row = try Self.row(rule)
      for other in rows where other.database == row.database {
        guard other.policy.prefix != row.policy.prefix else {
          throw SettingsError("the policy \(rule) is for the same keys as another one")
        }
      }
      rows.append(row)
    }
  }

  private static func row(_ rule: String) throws(SettingsError) -> Row {
    // A prefix may contain `=`, so the last one separates it from the policy.
    guard let sign = rule.lastIndex(of: "=") else {
      throw SettingsError("the policy \(rule) is not like NAME=POLICY or NAME/PREFIX=POLICY")
    }
    let place = rule[..<sign].split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    let name = place.first ?? ""
    let database = DatabaseName(name)
    guard database != nil || name == "*" else {
      throw SettingsError("\(name) is no name of a database; * is for all")
    }
    let prefix = place.count > 1 ? Array(place[1].utf8) : []
    guard prefix.count <= longestPrefix else {
      throw SettingsError("the prefix of a policy has at most \(longestPrefix) bytes")
    }
    let policy: ConflictPolicy
    switch rule[rule.index(after: sign)...] {
    case "detect": policy = .detect
    case "lastWriterWins": policy = .lastWriterWins
    default:
      throw SettingsError("the policy of \(rule) is none of detect and lastWriterWins")
    }
    return Row(database: database, policy: CollectionPolicy(prefix: prefix, policy: policy))
  }

  /// The policies of a database; a rule with its name overrides one for all databases.
  func policies(of name: DatabaseName) -> [CollectionPolicy] {
    let named = rows.filter { $0.database == name }.map(\.policy)
    let others = rows.filter { $0.database == nil }.map(\.policy)
    return named + others.filter { other in !named.contains { $0.prefix == other.prefix } }
  }
}

extension SyncHandler {
  /// Sets policies that the database does not have yet. Its policies for other prefixes stay.
  func adopt(_ policies: [CollectionPolicy]) throws(TidemarkError) {
    let current = self.policies
    for policy in policies where !current.contains(policy) {
      try setPolicy(policy.policy, forKeysWithPrefix: policy.prefix)
    }
  }
}
