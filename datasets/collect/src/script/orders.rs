//! The orders in which the steps of several sessions can be sent: all interleavings, each session's steps in their order.

/// More runs are refused.
const MOST_ORDERS: u64 = 2_000;

/// Every interleaving of steps, each given by its session; an error says how many there are.
pub(super) fn all(sessions: &[usize]) -> Result<Vec<Vec<usize>>, String> {
    let n_sessions = sessions.iter().max().map_or(0, |it| it + 1);
    let of = |session: usize| (0..sessions.len()).filter(move |&at| sessions[at] == session);
    let steps: Vec<Vec<usize>> = (0..n_sessions).map(|it| of(it).collect()).collect();
    let counts: Vec<u64> = steps.iter().map(|it| it.len() as u64).collect();
    let n_orders = count(&counts);
    if n_orders.is_none_or(|n| n > MOST_ORDERS) {
        let number = n_orders.map_or("too many".to_owned(), |n| n.to_string());
        return Err(format!(
            "these steps have {number} orders, and at most {MOST_ORDERS} are run; leave out steps, or give some orders as `order a b b a`"
        ));
    }
    let mut found = Vec::new();
    let mut sent = vec![0; n_sessions];
    interleave(&steps, &mut sent, &mut Vec::new(), &mut found);
    Ok(found)
}

/// The multinomial of these counts.
fn count(counts: &[u64]) -> Option<u64> {
    let mut total = 0_u64;
    let mut orders = 1_u64;
    for &n in counts {
        for nth in 1..=n {
            total += 1;
            // A product of binomials, so each division leaves no rest.
            orders = orders.checked_mul(total)? / nth;
        }
    }
    Some(orders)
}

fn interleave(
    steps: &[Vec<usize>],
    sent: &mut [usize],
    order: &mut Vec<usize>,
    found: &mut Vec<Vec<usize>>,
) {
    let mut is_whole = true;
    for (session, own) in steps.iter().enumerate() {
        let Some(&step) = own.get(sent[session]) else {
            continue;
        };
        is_whole = false;
        sent[session] += 1;
        order.push(step);
        interleave(steps, sent, order, found);
        order.pop();
        sent[session] -= 1;
    }
    if is_whole {
        found.push(order.clone());
    }
}

/// The steps in the order in which their sessions are named; nothing where a session is named too often or too rarely.
pub(super) fn given(sessions: &[usize], order: &[usize]) -> Option<Vec<usize>> {
    let mut left: Vec<usize> = (0..sessions.len()).collect();
    let mut steps = Vec::new();
    for &session in order {
        let at = left.iter().position(|&it| sessions[it] == session)?;
        steps.push(left.remove(at));
    }
    left.is_empty().then_some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sessions_of_two_steps_have_six_orders() {
        let orders = all(&[0, 0, 1, 1]).unwrap();
        assert_eq!(orders.len(), 6);
        for order in &orders {
            let place = |step: usize| order.iter().position(|&it| it == step);
            assert!(place(0) < place(1) && place(2) < place(3), "{order:?}");
        }
        let mut each = orders.clone();
        each.sort();
        each.dedup();
        assert_eq!(each.len(), 6);
        assert_eq!(all(&[0, 1, 2, 0, 1, 2]).unwrap().len(), 90);
        assert!(all(&[0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]).is_err());
    }

    #[test]
    fn an_order_names_each_session_as_often_as_it_has_steps() {
        assert_eq!(given(&[0, 0, 1], &[1, 0, 0]), Some(vec![2, 0, 1]));
        assert_eq!(given(&[0, 0, 1], &[1, 0]), None);
        assert_eq!(given(&[0, 0, 1], &[1, 0, 1]), None);
    }
}
