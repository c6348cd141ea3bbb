//! The language by example, its faults by place, and random expressions against an `i128` / `f64` reference.

use proptest::prelude::*;

use super::*;
use durawarp_base::document::SourceText;

/// N = 10, x = 2.5, buffers `a` (integers 0, 10, 20, 30), `f` (floats 0.5, 1.5) and `s` (structures with
/// field `k`).
fn scope() -> (Scope, Vec<u64>) {
    let mut scope = Scope { element_reads: true, ..Scope::default() };
    scope.define("N", Type::Int);
    scope.define("x", Type::Float);
    scope.define("len(a)", Type::Int);
    let readable = |name: &str, buffer, ty| Readable { name: name.to_owned(), buffer, field: 0, ty };
    scope.buffers = vec![
        readable("a", 0, Some(Type::Int)),
        readable("f", 1, Some(Type::Float)),
        readable("s", 2, None),
        readable("s.k", 2, Some(Type::Int)),
    ]
    .into();
    (scope, vec![10, 2.5_f64.to_bits(), 4])
}

struct Sample;

impl Elements for Sample {
    fn len(&self, buffer: u16) -> u64 {
        [4, 2, 3][usize::from(buffer)]
    }

    fn element(&self, which: Which, element: Element) -> Result<u64, Miss> {
        let initial = u64::from(which == Which::Initial);
        Ok(match element.buffer {
            1 => (element.index as f64 + 0.5).to_bits(),
            _ => element.index * 10 + initial,
        })
    }
}

fn evaluate(text: &str) -> Result<Value, String> {
    let (scope, mut frame) = scope();
    let source = std::sync::Arc::new(SourceText::new("t", text.to_owned()));
    let place = Place::new(&source, 0..text.len());
    let expr = Expr::compile(text, &place, &scope).map_err(|fault| fault.to_string())?;
    let fixed = expr.fixed(&frame);
    let value =
        |expr: &Expr, frame: &mut Vec<u64>| expr.evaluate(frame, &Sample).map_err(|stop| expr.fault(stop).to_string());
    let found = value(&expr, &mut frame);
    // What follows from the frame alone changes nothing when it is worked out before; nor is the frame looked
    // at then.
    let shown = |value: &Result<Value, String>| format!("{value:?}");
    assert_eq!(shown(&value(&fixed, &mut vec![u64::MAX; frame.len()])), shown(&found), "{text}");
    found
}

fn int(text: &str, expected: i64) {
    assert_eq!(evaluate(text), Ok(Value::Int(expected)), "{text}");
}

fn float(text: &str, expected: f64) {
    assert_eq!(evaluate(text), Ok(Value::Float(expected)), "{text}");
}

fn fault(text: &str, expected: &str) {
    assert_eq!(evaluate(text).map_err(|e| e.replace("t:1:", "")), Err(expected.to_owned()), "{text}");
}

#[test]
fn operators_bind_as_in_c() {
    int("1 + 2 * 3 - 4 / 2", 5);
    int("-2 * -3", 6);
    int("7 - 2 - 1", 4);
    int("1 + 1 == 2 && 3 < 4 || 0", 1);
    int("!0 + !5", 1);
    int("N > 5 ? 1 : 0 ? 2 : 3", 1);
    int("(1 + 2) * 3", 9);
    int("0x10 + 1_000", 1016);
}

#[test]
fn integer_division_rounds_toward_zero_and_a_float_makes_floats() {
    int("7 / 2", 3);
    int("-7 / 2", -3);
    int("-7 % 3", -1);
    float("7 / 2.0", 3.5);
    float("N * x", 25.0);
    float("7.5 % 2", 1.5);
    int("2.5 == x", 1);
}

#[test]
fn functions_have_the_kind_of_their_operands() {
    int("min(3, 1, 2) + max(4, 9)", 10);
    float("min(3, 0.5)", 0.5);
    int("abs(-3)", 3);
    int("ceil_div(7, 2) + ceil_div(-7, 2) + ceil_div(8, 2)", 5);
    int("log2(1024)", 10);
    int("log2(1023)", 9);
    float("log2(8.0)", 3.0);
    int("pow(2, 10)", 1024);
    float("pow(2.0, -1)", 0.5);
    float("sqrt(16)", 4.0);
    float("floor(2.7) + ceil(2.2)", 5.0);
    int("int(-2.7)", -2);
    float("float(3) / 2", 1.5);
    float("exp(0)", 1.0);
}

#[test]
fn software_functions_never_change() {
    let golden = [
        ("exp(1)", 2.7182818284590455_f64),
        ("sin(1)", 0.8414709848078965),
        ("cos(1)", 0.5403023058681398),
        ("log2(10.0)", std::f64::consts::LOG2_10),
        ("pow(10, 0.3)", 1.9952623149688795),
    ];
    for (text, expected) in golden {
        float(text, expected);
    }
}

#[test]
fn elements_and_sums() {
    int("a[3] + $N", 40);
    float("f[1] * 2", 3.0);
    int("s.k[2]", 20);
    int("len(a)", 4);
    int("sum(k, 0, len(a), a[k])", 60);
    int("sum(k, 0, 3, sum(l, 0, k, k * l))", 2);
    float("sum(k, 0, 2, f[k])", 2.0);
    int("sum(k, 5, 2, 1)", 0);
    int("initial(a[1] + a[2]) - a[0]", 32);
    // The untaken side is not evaluated.
    int("N < 5 ? a[99] : 1", 1);
    int("N > 5 || a[99]", 1);
}

#[test]
fn syntax_faults_have_places() {
    fault("1 +", "4: expected a value, found the end of the expression");
    fault("(1 + 2", "7: expected `)`, found the end of the expression");
    fault("1 2", "3: expected an operator, found `2`");
    fault("N = 3", "3: expected an operator, found `=` (equality is `==`)");
    fault("1 < 2 < 3", "7: comparisons do not chain (write `a < b && b < c`)");
    fault("1.2.3", "1: `1.2.3` is not a number");
    fault("9223372036854775808", "1: `9223372036854775808` is larger than the largest integer, 2^63 - 1");
    fault("1 # 2", "3: `#` has no meaning in an expression");
    fault(" ", "1: the expression is empty");
    fault(&"(".repeat(200), "129: the expression nests too deeply");
}

#[test]
fn name_and_type_faults_have_places_and_advice() {
    fault("n + 1", "1: `n` is not defined here (did you mean `N`?)");
    fault("1 + width", "5: `width` is not defined here (defined here: N, x)");
    fault("a + 1", "1: `a` is not defined here (`a` is a buffer: read an element with `a[index]`)");
    fault("sqr(2)", "1: no function is called `sqr` (did you mean `sqrt`?)");
    fault("min(1)", "1: `min` is called as `min(a, b, ...)`, found 1 argument");
    fault("b[0]", "1: there is no buffer `b` (buffers: a, f, s, s.k)");
    fault("s[0]", "1: the elements of `s` are structures (name a field: `s.field[index]`)");
    fault("a[x]", "3: an index must be an integer, this is a float (`int(x)` rounds toward zero)");
    fault("x ? 1 : 2", "1: a condition must be an integer, this is a float (compare it: `x != 0.0`)");
    fault("sum(N, 0, 3, 1)", "5: `N` already has a meaning here (choose another name for the variable of `sum`)");
    fault("sum(1, 0, 3, 1)", "5: the first argument of `sum` must be a new name (`sum(k, 0, N, a[k])`)");
    fault("@a[0]", "1: `@` reads the device while the host program runs (here, write `a[...]`)");
    fault(
        "ceil_div(x, 2)",
        "10: an operand of `ceil_div` must be an integer, this is a float (`int(x)` rounds toward zero)",
    );
}

#[test]
fn run_time_faults_have_places() {
    fault("1 + N / (N - 10)", "5: `N / (N - 10)`: integer division by zero");
    fault("1 % 0", "1: `1 % 0`: integer division by zero");
    fault("9223372036854775807 + 1", "1: `9223372036854775807 + 1`: integer overflow (beyond 64 bits)");
    fault(
        "(0 - 9223372036854775807 - 1) / -1",
        "1: `(0 - 9223372036854775807 - 1) / -1`: integer overflow (beyond 64 bits)",
    );
    fault("pow(2, 63)", "1: `pow(2, 63)`: integer overflow (beyond 64 bits)");
    fault("pow(2, -1)", "1: `pow(2, -1)`: integer power with the negative exponent -1");
    fault("log2(0)", "1: `log2(0)`: `log2` of 0, which is not positive");
    fault("int(1e30)", "1: `int(1e30)`: 1e30 cannot be made an integer");
    fault("1 + a[4]", "5: `a[4]`: index 4 is outside the buffer's 4 elements");
    fault("a[-1]", "1: `a[-1]`: index -1 is outside the buffer's 4 elements");
}

#[test]
fn a_place_inside_a_quoted_string_is_exact_and_in_an_escaped_one_the_whole() {
    let source = std::sync::Arc::new(SourceText::new("m", "len = \"N * M\"\nb = \"\\u004e * M\"".to_owned()));
    let (scope, _) = scope();
    let at = |start: usize, end: usize, text: &str| {
        let place = Place::new(&source, start..end);
        Expr::compile(text, &place, &scope).unwrap_err().to_string()
    };
    assert!(at(6, 13, "N * M").starts_with("m:1:12: `M` is not defined here"));
    assert!(at(18, 30, "N * M").starts_with("m:2:5: `M` is not defined here"));
}

/// A random expression as text, with its exact value by `i128` (`None`: a fault).
fn integer_expression() -> impl Strategy<Value = (String, Option<i128>)> {
    let in_range = |value: i128| i64::try_from(value).is_ok().then_some(value);
    let leaf = prop_oneof![
        (0..=i64::MAX).prop_map(|n| (n.to_string(), Some(i128::from(n)))),
        (0_i64..20).prop_map(|n| (n.to_string(), Some(i128::from(n)))),
        Just(("N".to_owned(), Some(10))),
    ];
    leaf.prop_recursive(6, 64, 2, move |inner| {
        (0..12_usize, inner.clone(), inner).prop_map(move |(op, (a, va), (b, vb))| {
            let both = va.zip(vb);
            let (text, value) = match op {
                0 => (format!("({a} + {b})"), both.map(|(a, b)| a + b)),
                1 => (format!("({a} - {b})"), both.map(|(a, b)| a - b)),
                2 => (format!("({a} * {b})"), both.map(|(a, b)| a * b)),
                3 => (format!("({a} / {b})"), both.filter(|v| v.1 != 0).map(|(a, b)| a / b)),
                4 => (
                    format!("({a} % {b})"),
                    both.filter(|v| v.1 != 0 && !(v.0 == i128::from(i64::MIN) && v.1 == -1)).map(|(a, b)| a % b),
                ),
                5 => (format!("(-{a})"), va.map(|a| -a)),
                6 => (format!("min({a}, {b})"), both.map(|(a, b)| a.min(b))),
                7 => (format!("max({a}, {b})"), both.map(|(a, b)| a.max(b))),
                8 => (format!("({a} < {b})"), both.map(|(a, b)| i128::from(a < b))),
                9 => (format!("abs({a})"), va.map(i128::abs)),
                10 => (format!("({a} == {b} ? {b} : {a})"), both.map(|(a, b)| if a == b { b } else { a })),
                _ => (
                    format!("ceil_div({a}, {b})"),
                    both.filter(|v| v.1 != 0).map(|(a, b)| {
                        let (q, r) = (a / b, a % b);
                        if r != 0 && (a < 0) == (b < 0) { q + 1 } else { q }
                    }),
                ),
            };
            (text, value.and_then(in_range))
        })
    })
}

/// A random float expression as text, with its value by `f64`.
fn float_expression() -> impl Strategy<Value = (String, f64)> {
    let leaf = prop_oneof![
        (-1e6..1e6_f64).prop_map(|x| (format!("({x:?})"), x)),
        Just(("x".to_owned(), 2.5)),
        (0_i64..100).prop_map(|n| (format!("float({n})"), n as f64)),
    ];
    leaf.prop_recursive(6, 64, 2, |inner| {
        (0..8_usize, inner.clone(), inner).prop_map(|(op, (a, va), (b, vb))| match op {
            0 => (format!("({a} + {b})"), va + vb),
            1 => (format!("({a} - {b})"), va - vb),
            2 => (format!("({a} * {b})"), va * vb),
            3 => (format!("({a} / {b})"), va / vb),
            4 => (format!("sqrt(abs({a}))"), va.abs().sqrt()),
            5 => (format!("floor({a})"), va.floor()),
            6 => (format!("(-{a})"), -va),
            _ => (format!("({a} > {b} ? {a} : {b})"), if va > vb { va } else { vb }),
        })
    })
}

proptest! {
    #[test]
    fn integers_agree_with_a_wider_reference((text, expected) in integer_expression()) {
        let found = evaluate(&text);
        match expected {
            Some(value) => prop_assert_eq!(found, Ok(Value::Int(value as i64)), "{}", text),
            None => prop_assert!(found.is_err(), "{} = {:?}", text, found),
        }
    }

    #[test]
    fn floats_agree_bit_by_bit((text, expected) in float_expression()) {
        let Ok(Value::Float(found)) = evaluate(&text) else { panic!("{text}") };
        prop_assert!(found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan()), "{}", text);
    }

    #[test]
    fn no_text_makes_the_compiler_panic(text in "[-+*/%<>=!&|?:()\\[\\],.@$ aNxk0-9e]{0,40}") {
        let _ = evaluate(&text);
    }
}

#[test]
fn terms_of_all_sums_of_a_value_are_bounded() {
    let (scope, frame) = scope();
    let text = "sum(i, 0, N, sum(j, 0, 3, i * j)) + sum(i, 5, 2, 1)";
    let source = std::sync::Arc::new(SourceText::new("t", text.to_owned()));
    let expr = Expr::compile(text, &Place::new(&source, 0..text.len()), &scope).unwrap();
    let within = |most_terms: u64| {
        let mut frame = frame.clone();
        frame.resize(usize::from(expr.code.slots), 0);
        eval::run_within(&expr.code, &mut frame, &Sample, most_terms)
    };
    // Ten, and three for each of these; a sum from 5 to 2 has none.
    assert_eq!(within(40), Ok(135));
    assert!(matches!(within(39), Err(Stop::Fault(_, EvalFault::TooManyTerms))));
    let (fault, whole) = (evaluate("sum(i, 0, 1000000000000, i)"), evaluate("sum(i, -9000000000000000000, 9, 1)"));
    assert!(fault.unwrap_err().contains("sums of over 1073741824 terms for one value"), "{whole:?}");
    assert!(whole.is_err());
}

/// Why a condition does not hold on [`Sample`]: what has the value, the value, what it should be, and what it
/// is given by.
fn reasons(text: &str) -> Vec<String> {
    let (scope, mut frame) = scope();
    let source = std::sync::Arc::new(SourceText::new("t", text.to_owned()));
    let expr = Expr::compile(text, &Place::new(&source, 0..text.len()), &scope).unwrap().fixed(&frame);
    assert_eq!(expr.evaluate(&mut frame, &Sample), Ok(Value::Int(0)), "{text}");
    let name = |element: &Element| format!("{}{}", ["a", "f", "s.k"][usize::from(element.buffer)], element.index);
    let told = |reason: &Reason| {
        let what = reason.element.as_ref().map_or_else(|| reason.text.clone(), name);
        let than = reason.than_element.as_ref().map(name).or(reason.than_text.clone());
        let than = than.map_or_else(String::new, |than| format!(" as {than}"));
        let given = reason.given.iter().map(|element| format!(" by {}", name(element)));
        format!("{what} {}: {}{}{than}{}", reason.found, reason.relation, reason.than, given.collect::<String>())
    };
    expr.reasons(&mut frame, &Sample, 3).iter().map(told).collect()
}

#[test]
fn a_condition_that_does_not_hold_blames_the_elements_that_decide_it() {
    for (text, blamed) in [
        ("a[1] == 5", &["a1 10: 5"][..]),
        ("5 > a[1]", &["a1 10: less than 5"]),
        ("a[1] != N", &["a1 10: not 10"]),
        ("!(a[2] >= 20)", &["a2 20: less than 20"]),
        ("a[0]", &["a0 0: not 0"]),
        ("f[1] < x - 1.0", &["f1 1.5: less than 1.5"]),
        ("a[1] > 0.5 * 30", &["a1 10: more than 15.0"]),
        ("a[2] == s.k[1]", &["a2 20: 10 as s.k1"]),
        ("a[1] == a[2] + 1", &["a1 10: 21 as a[2] + 1 by a2"]),
        ("a[0] + a[1] == N + 1", &["a[0] + a[1] 10: 11 by a0 by a1"]),
        ("initial(a[1]) == a[1]", &["a1 10: 11 as initial(a[1])"]),
        // The part of a conjunction that fails; what a disjunction or a choice depends on.
        ("a[0] == 0 && a[1] == 1", &["a1 10: 1"]),
        ("a[1] == 0 || a[2] == 2", &["a2 20: 2 by a1"]),
        ("!(a[1] == 10 && a[2] == 20)", &["a2 20: not 20 by a1"]),
        ("a[1] == 10 ? a[2] == 2 : a[3] == 3", &["a2 20: 2 by a1"]),
        // Terms that should all hold, or none; at most as many as asked for.
        ("sum(i, 0, 4, a[i] == 10 * (i % 3)) == 4", &["a3 30: 0 as 10 * (i % 3)"]),
        ("sum(i, 0, 4, a[i] > 9) == 0", &["a1 10: at most 9", "a2 20: at most 9", "a3 30: at most 9"]),
        ("1 > sum(i, 0, 4, a[i] > 19)", &["a2 20: at most 19", "a3 30: at most 19"]),
        ("sum(j, 0, 2, sum(i, 2 * j, 2 * j + 2, a[i] != 20)) == 4", &["a2 20: not 20"]),
        (
            "sum(i, 0, 3, a[i] != 0 && sum(k, 0, 2, f[k] < 1.0) != 2) == 0",
            &["f1 1.5: less than 1.0 by a1", "f1 1.5: less than 1.0 by a2"],
        ),
        // A sum over one value is its name; what it stands for is blamed.
        ("sum(y, a[1] / 10, a[1] / 10 + 1, sum(n, a[y], a[y] + 1, n < 5)) == 1", &["a1 10: less than 5"]),
        // Some number of terms: no term alone is to blame.
        ("sum(i, 0, 4, a[i] > 9) == 2", &["sum(i, 0, 4, a[i] > 9) 3: 2 by a0 by a1 by a2 by a3"]),
        ("sum(i, 0, 4, a[i]) == 4", &["sum(i, 0, 4, a[i]) 60: 4 by a0 by a1 by a2 by a3"]),
        ("sum(i, 0, 4, a[i] > 99) > 0", &["sum(i, 0, 4, a[i] > 99) 0: more than 0 by a0 by a1 by a2 by a3"]),
    ] {
        assert_eq!(reasons(text), blamed, "{text}");
    }
}

#[test]
fn a_batch_has_the_bits_of_single_evaluations_or_none() {
    let (mut scope, mut frame) = scope();
    scope.element_reads = false;
    let indices = ["idx", "i", "j"].map(|name| usize::from(scope.define(name, Type::Int)));
    frame.resize(usize::from(scope.slots), 0);
    let lanes = [0, 1, 2].map(|index| std::array::from_fn(|lane| (lane as u64 + 7 * index) * (index + 1)));
    let compiled = |text: &str| {
        let source = std::sync::Arc::new(SourceText::new("t", text.to_owned()));
        Expr::compile(text, &Place::new(&source, 0..text.len()), &scope).unwrap_or_else(|fault| panic!("{fault}"))
    };
    for text in [
        "idx * 3 % 17 - j",
        "(i + N) / 3 + ceil_div(idx, 7) + min(i, 40) * max(j, 3)",
        "-idx + abs(3 - idx) + log2(idx + 1) + pow(2, i % 5)",
        "x * idx - sqrt(i + 0.5) / (1.0 + j) + min(sin(idx), 0.25) % 0.125",
        "idx < 30 && j >= 20 || !(i == 40) ? exp(x) : floor(i * 1.5)",
        "int(idx * 1.7) + (x > 2.0 ? 1 : 0)",
        "7",
    ] {
        let expr = compiled(text);
        let mut batch = expr.batch(&frame, indices).unwrap();
        assert!(batch.run(|index, to| *to = lanes[index]), "{text}");
        for lane in 0..LANES {
            let mut frame = frame.clone();
            indices.iter().zip(&lanes).for_each(|(&slot, lanes)| frame[slot] = lanes[lane]);
            let one = expr.evaluate(&mut frame, &NoElements).unwrap();
            assert_eq!(batch.values()[lane], one.bits(), "`{text}`, lane {lane}");
        }
    }
    for text in ["10 / (idx - 5)", "idx == 5 ? 0 : 10 / (idx - 5)", "log2(idx)", "idx * 9223372036854775807"] {
        let has_values = compiled(text).batch(&frame, indices).unwrap().run(|index, to| *to = lanes[index]);
        assert!(!has_values, "{text}");
    }
    assert!(compiled("sum(k, 0, idx, k)").batch(&frame, indices).is_none());
}
