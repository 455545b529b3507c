# What filters can call beside the natives, as jq defines it.

# Basics
def null: [][0];
def true: 0 == 0;
def false: 0 != 0;
def empty: {}[] as $x | .;
def not: if . then false else true end;
def error: _error_empty as $x | .;
def error(msg): (msg | _error_empty) as $x | .;
def select(f): if f then . else empty end;
def map(f): [.[] | f];
def map_values(f): .[] |= f;
def recurse(f): def r: ., (f | r); r;
def recurse: recurse(.[]?);
def recurse(f; cond): def r: ., (f | select(cond) | r); r;
def tostring: "\(.)";

# Types
def isfinite: type == "number" and (isinfinite | not);
def arrays: select(type == "array");
def objects: select(type == "object");
def iterables: select(type | . == "array" or . == "object");
def booleans: select(type == "boolean");
def numbers: select(type == "number");
def normals: select(isnormal);
def finites: select(isfinite);
def strings: select(type == "string");
def nulls: select(. == null);
def values: select(. != null);
def scalars: select(type | . != "array" and . != "object");
def toboolean:
  if . == true or . == false then .
  elif . == "true" then true
  elif . == "false" then false
  else error("\(type) (\(tojson[:30])) cannot be parsed as a boolean") end;
def toarray: if type == "array" then . else [.] end;
def have_literal_numbers: true;
def have_decnum: true;

# Numbers
def abs: if type != "number" then error("\(type) (\(tojson[:30])) has no absolute value") elif . < 0 then - . else . end;
def logb:
  if . == 0 then -infinite elif isinfinite then infinite elif isnan then . else ilogb end;
def significand: if isinfinite or isnan then . elif . == 0 then 0 else scalbln(.; -ilogb) end;
def pow10: pow(10; .);
def exp10: pow(10; .);
def drem($l; r): remainder($l; r) | if . == 0 then copysign(.; $l) else . end;
def nexttoward(x; y): nextafter(x; y);
def scalb(x; e): x * pow(2; e);
def gamma: lgamma;
def lgamma_r: lgamma;

# Streams
def range($to): range(0; $to; 1);
def range($from; $to): range($from; $to; 1);
def while(cond; update): def r: if cond then ., (update | r) else empty end; r;
def until(cond; update): def r: if cond then . else update | r end; r;
def repeat(f): def r: f, r; r;
def limit($n; f): if $n < 0 then error("limit doesn't support negative count") else _limit($n; f) end;
def skip($n; f): if $n < 0 then error("skip doesn't support negative count") else _skip($n; f) end;
def nth($n): .[$n];
def nth($n; f): if $n < 0 then error("nth doesn't support negative indices") else first(skip($n; f)) end;
def first: .[0];
def last: .[-1];
def isempty(f): first((f | false), true);
def all(f; cond): isempty(f | cond and empty);
def any(f; cond): isempty(f | cond or empty) | not;
def all(cond): all(.[]; cond);
def any(cond): any(.[]; cond);
def all: all(.[]; .);
def any: any(.[]; .);
def add(f): reduce f as $x (null; . + $x);
def add: add(.[]);
def IN(s): any(s == .; .);
def IN(src; s): any(src == s; .);

# Paths
def getpath($path): if ($path | type) != "array" then error("Path must be specified as an array") else reduce $path[] as $p (.; .[$p]) end;
def setpath($path; $x): getpath($path) = $x;
def paths: path(..) | select(length > 0);
def paths(f): path(.. | select(f)) | select(length > 0);
def leaf_paths: paths(scalars);
def del(f): delpaths([path(f)]);
def pick(f): . as $in | reduce path(f) as $p (null; setpath($p; $in | getpath($p)));
def to_entries: [_key_values[] as [$key, $value] | {$key, $value}];
def _entry_key: if . == null then "null" elif type == "string" then . elif type == "boolean" or type == "number" then tojson
  else error("Cannot use \(type) (\(tojson[:30])) as object key") end;
def from_entries: reduce (.[] | {
    (if .key != null and .key != false then .key
     elif .k != null and .k != false then .k
     elif .name != null and .name != false then .name
     elif .Name != null and .Name != false then .Name
     elif .Key != null and .Key != false then .Key
     elif .K != null and .K != false then .K
     elif has("key") then .key else null end | _entry_key):
    (if has("value") then .value elif has("v") then .v elif has("Value") then .Value else .V end) }) as $x ({}; . + $x);
def with_entries(f): to_entries | map(f) | from_entries;
def walk(f): def w: (if type == "object" then map_values(w) elif type == "array" then map(w) else . end) | f; w;
def keys: keys_unsorted | sort;
def tostream: path(def r: (.[]? | r), .; r) as $p | getpath($p) | reduce path(.[]?) as $q ([$p, .]; [$p + $q]);
def fromstream(f): {x: null, e: false} as $init
  | foreach f as $i ($init;
      if .e then $init else . end
      | if $i | length == 2
        then setpath(["e"]; $i[0] | length == 0) | setpath(["x"] + $i[0]; $i[1])
        else setpath(["e"]; $i[0] | length == 1) end;
      if .e then .x else empty end);
def truncate_stream(f): . as $n | null | f | . as $x | if (.[0] | length) > $n then setpath([0]; $x[0][$n:]) else empty end;

# Arrays
def in(xs): . as $x | xs | has($x);
def inside(xs): . as $x | xs | contains($x);
def indices($i): _indices($i);
def index($i): _indices($i) | .[0];
def rindex($i): _indices($i) | .[-1:][0];
def join($s): _join($s);
def _flatten($n): reduce .[] as $x ([]; if ($x | type) == "array" and $n != 0 then . + ($x | _flatten($n - 1)) else . + [$x] end);
def flatten($n): if $n < 0 then error("flatten depth must not be negative") else _flatten($n) end;
def flatten: _flatten(-1);
def combinations: if length == 0 then [] else .[0][] as $x | (.[1:] | combinations) as $y | [$x] + $y end;
def combinations($n): . as $dot | [range($n) | $dot] | combinations;
def min_by(f): reduce _min_by(f) as $x (null; $x);
def max_by(f): reduce _max_by(f) as $x (null; $x);
def min: min_by(.);
def max: max_by(.);
def transpose: [range(0; map(length) | max // 0) as $i | [.[][$i]]];
def unique_by(f): [group_by(f)[] | .[0]];
def unique: unique_by(.);
def INDEX(stream; f): reduce stream as $row ({}; .[$row | f | tostring] = $row);
def INDEX(f): INDEX(.[]; f);
def JOIN($idx; f): [.[] | [., $idx[f]]];
def JOIN($idx; stream; f): stream | [., $idx[f]];
def JOIN($idx; stream; f; join): stream | [., $idx[f]] | join;

# Strings
def ascii: [.] | implode;
def _re(f): if type == "string" then [., null] elif type == "array" and length > 1 then [.[0], .[1]]
  elif type == "array" and length > 0 then [.[0], null]
  else error("\(type) (\(tojson[:30])) cannot be matched, as it is not a string") end;
def match($re; $flags): _match($re; $flags)[];
def match($val): ($val | _re(.)) as [$re, $flags] | _match($re; $flags)[];
def test($re; $flags): _test($re; $flags);
def test($val): ($val | _re(.)) as [$re, $flags] | _test($re; $flags);
def _captures: reduce (.captures[] | select(.name != null) | {(.name): .string}) as $pair ({}; . + $pair);
def capture($re; $flags): match($re; $flags) | _captures;
def capture($val): match($val) | _captures;
def scan($re; $flags): match($re; "g" + $flags) | if (.captures | length) > 0 then [.captures[].string] else .string end;
def scan($re): scan($re; null);
def split($re; $flags): [_pieces($re; "g" + $flags)[] | strings];
def splits($re; $flags): _pieces($re; "g" + $flags)[] | strings;
def splits($re): splits($re; null);
def sub($re; f; $flags): reduce _pieces($re; $flags)[] as $x (""; . + (if ($x | type) == "object" then $x | _captures | f else $x end));
def sub($re; f): sub($re; f; null);
def gsub($re; f; $flags): sub($re; f; $flags + "g");
def gsub($re; f): sub($re; f; "g");

# Dates, in UTC
def strptime($format): if type != "string" then error("strptime/1 requires string inputs and arguments") else _strptime($format) end;
def mktime: if type != "array" then error("mktime requires array of 6 numbers") else _mktime end;
def gmtime: if type != "number" then error("gmtime() requires a number") else _gmtime end;
def localtime: gmtime;
def strftime($format): if type == "number" or type == "array" then _strftime($format) else error("strftime/1 requires parsed datetime inputs") end;
def strflocaltime($format): strftime($format);
def todateiso8601: strftime("%Y-%m-%dT%H:%M:%SZ");
def fromdateiso8601: strptime("%Y-%m-%dT%H:%M:%SZ") | mktime;
def todate: todateiso8601;
def fromdate: fromdateiso8601;
def date: todate;
def dateadd(unit; n): . + n;
def datesub(unit; n): . - n;

# Formats
def @text: tostring;
def @json: tojson;
def @csv: _csv;
def @tsv: _tsv;
def @html: tostring | _html;
def @uri: tostring | _encode_uri;
def @urid: tostring | _decode_uri;
def @sh: if type == "array" then map(if type == "array" or type == "object" then error("\(type) (\(tojson[:30])) can not be escaped for shell")
    elif type == "string" then _sh else tojson end) | join(" ")
  elif type == "object" then error("\(type) (\(tojson[:30])) can not be escaped for shell")
  elif type == "string" then _sh else tojson end;
def @base64: tostring | _base64;
def @base64d: tostring | _base64d;
def @base32: tostring | _base32;
def @base32d: tostring | _base32d;
