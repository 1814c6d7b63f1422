/// Merges JSON objects field by field.
///
/// A field that only one side has changed since the base is taken from it, objects within objects
/// likewise. Other values are compared by what they say and taken whole, with the text that they
/// have. The result has the local fields in their order, then those that only the remote has.
package struct JSONMerge {
  /// The outcome for a field that both sides have changed, each in its way.
  package enum Choice {
    /// A value; nil leaves the field out.
    case value(ParsedJSON?)
    /// The objects are not to be merged.
    case undecided
  }

  /// Decides on such a field: on what the local side, the remote one and the base have, at the
  /// names from the outermost object on.
  package typealias Chooser = (ParsedJSON?, ParsedJSON?, ParsedJSON?, [[UInt8]]) -> Choice

  /// - Parameter base: the object that both were made of; nil where nobody knows.
  /// - Returns: nil when a field was decided so.
  package static func merge(
    _ local: ParsedJSON.Object, _ remote: ParsedJSON.Object, _ base: ParsedJSON.Object?,
    at path: [[UInt8]] = [], choosing choose: Chooser
  ) -> ParsedJSON? {
    var result = ParsedJSON.Object()
    for name in local.names + remote.names.filter({ local.members[$0] == nil }) {
      let mine = local.members[name]?.value
      let theirs = remote.members[name]?.value
      let old = base?.members[name]?.value
      let value: ParsedJSON?
      if mine == theirs || base != nil && theirs == old {
        value = mine
      } else if base != nil, mine == old {
        value = theirs
      } else if base == nil, mine == nil || theirs == nil {
        // Without a base nobody knows that a field was taken away.
        value = mine ?? theirs
      } else if let inner = mine?.object, let other = theirs?.object {
        let both = merge(inner, other, old?.object, at: path + [name], choosing: choose)
        guard let both else { return nil }
        value = both
      } else {
        guard case .value(let chosen) = choose(mine, theirs, old, path + [name]) else { return nil }
        value = chosen
      }
      guard let value, let member = local.members[name] ?? remote.members[name] else { continue }
      result.names.append(name)
      result.members[name] = ParsedJSON.Object.Member(nameText: member.nameText, value: value)
    }
    return ParsedJSON(result)
  }
}
