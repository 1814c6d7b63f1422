package import TidemarkEngine

/// A filter of entries by their labels. An entry passes when it meets all three conditions:
/// ``all``, ``any`` and ``not``.
///
/// ```swift
/// var rows = try store.entries(labels: .all("inbox").any("2025", "2026").not("done"))
/// ```
public struct LabelFilter: Sendable, Hashable {
  /// Labels that an entry must carry, every one of them.
  public var all: [EntryLabel]
  /// Labels of which an entry must carry at least one. An empty array sets no condition.
  public var any: [EntryLabel]
  /// Labels that an entry must not carry.
  public var not: [EntryLabel]

  /// Creates a filter. Without parameters the filter lets every entry pass.
  /// - Parameters:
  ///   - all: labels that an entry must carry, every one of them.
  ///   - any: labels of which an entry must carry at least one; an empty array sets no condition.
  ///   - not: labels that an entry must not carry.
  public init(all: [EntryLabel] = [], any: [EntryLabel] = [], not: [EntryLabel] = []) {
    (self.all, self.any, self.not) = (all, any, not)
  }

  /// The filter that lets every entry pass.
  public static let everything = LabelFilter()

  /// Makes a filter for entries that carry all of the given labels.
  public static func all(_ labels: EntryLabel...) -> LabelFilter { LabelFilter(all: labels) }

  /// Makes a filter for entries that carry at least one of the given labels.
  public static func any(_ labels: EntryLabel...) -> LabelFilter { LabelFilter(any: labels) }

  /// Makes a filter for entries that carry none of the given labels.
  public static func not(_ labels: EntryLabel...) -> LabelFilter { LabelFilter(not: labels) }

  /// Returns this filter with a further condition: an entry must also carry all of the given
  /// labels.
  public func all(_ labels: EntryLabel...) -> LabelFilter {
    LabelFilter(all: all + labels, any: any, not: not)
  }

  /// Returns this filter with more labels for ``any``: an entry must carry at least one of the
  /// given labels or of those given before.
  public func any(_ labels: EntryLabel...) -> LabelFilter {
    LabelFilter(all: all, any: any + labels, not: not)
  }

  /// Returns this filter with a further condition: an entry must also carry none of the given
  /// labels.
  public func not(_ labels: EntryLabel...) -> LabelFilter {
    LabelFilter(all: all, any: any, not: not + labels)
  }

  /// Whether the filter sets no condition, so that every entry passes.
  public var isEmpty: Bool { all.isEmpty && any.isEmpty && not.isEmpty }

  /// Whether all matching entries carry a label of the filter: an index by label finds them then.
  package var isPositive: Bool { !all.isEmpty || !any.isEmpty }

  /// The engine's form.
  package var query: LabelQuery {
    LabelQuery(all: all.map(\.bytes), any: any.map(\.bytes), not: not.map(\.bytes))
  }

  // The functions below take labels of text that is not a literal.

  /// Makes a filter for entries that carry all of the given labels.
  @_disfavoredOverload
  public static func all<Text: StringProtocol>(_ labels: Text...) -> LabelFilter {
    LabelFilter(all: labels.map { EntryLabel($0) })
  }

  /// Makes a filter for entries that carry at least one of the given labels.
  @_disfavoredOverload
  public static func any<Text: StringProtocol>(_ labels: Text...) -> LabelFilter {
    LabelFilter(any: labels.map { EntryLabel($0) })
  }

  /// Makes a filter for entries that carry none of the given labels.
  @_disfavoredOverload
  public static func not<Text: StringProtocol>(_ labels: Text...) -> LabelFilter {
    LabelFilter(not: labels.map { EntryLabel($0) })
  }

  /// Returns this filter with a further condition: an entry must also carry all of the given
  /// labels.
  @_disfavoredOverload
  public func all<Text: StringProtocol>(_ labels: Text...) -> LabelFilter {
    LabelFilter(all: all + labels.map { EntryLabel($0) }, any: any, not: not)
  }

  /// Returns this filter with more labels for ``any``: an entry must carry at least one of the
  /// given labels or of those given before.
  @_disfavoredOverload
  public func any<Text: StringProtocol>(_ labels: Text...) -> LabelFilter {
    LabelFilter(all: all, any: any + labels.map { EntryLabel($0) }, not: not)
  }

  /// Returns this filter with a further condition: an entry must also carry none of the given
  /// labels.
  @_disfavoredOverload
  public func not<Text: StringProtocol>(_ labels: Text...) -> LabelFilter {
    LabelFilter(all: all, any: any, not: not + labels.map { EntryLabel($0) })
  }
}
